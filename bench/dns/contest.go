package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"egressd/bench/contest"
)

const startPatience = 20 * time.Second

func startUpstream(ctx context.Context, dir string) (*contest.Contestant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := contest.FreePort()
	if err != nil {
		return nil, err
	}
	c := &contest.Contestant{Name: "upstream", Addr: "127.0.0.1:" + port}
	c.Cmd = exec.CommandContext(ctx, self, upstreamFlag, c.Addr)
	return c, c.Start(dir)
}

// egressd is the daemon as it is used: rules in a file, each decision in a file,
// metrics on.
func egressd(name, binary, mode, port, up, dir string) (*exec.Cmd, error) {
	var b strings.Builder
	if mode == "forward" {
		fmt.Fprintf(&b, "dns:\n  mode: forward\n  upstreams: [%q]\n", up)
	}
	b.WriteString("allow:\n  - \"*.allowed.test\"\n  - \"*.fresh.test\"\n")
	for i := range 40 {
		fmt.Fprintf(&b, "  - host%d.example.com\n", i)
	}
	file := filepath.Join(dir, name+"-"+mode+".yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(binary, "--policy", file, "--listen", "none", "--dns", "127.0.0.1:"+port,
		"--admin", "127.0.0.1:0", "--events", filepath.Join(dir, name+"-"+mode+".jsonl")), nil
}

// unbound forwards, or answers from local data. Two threads, no log.
func unbound(c *config, mode, port, up, dir string) (*exec.Cmd, error) {
	local := "local-zone: allowed.test redirect\nlocal-data: 'allowed.test 60 A 198.18.0.1'\n"
	if mode == "forward" {
		host, upPort, _ := net.SplitHostPort(up)
		local = fmt.Sprintf("forward-zone:\n name: test\n forward-addr: %s@%s\n", host, upPort)
	}
	text := fmt.Sprintf(`server:
 interface: 127.0.0.1
 port: %s
 num-threads: 2
 so-reuseport: yes
 do-daemonize: no
 use-syslog: no
 username: ""
 chroot: ""
 directory: %q
 pidfile: ""
 do-not-query-localhost: no
 module-config: iterator
 do-ip6: no
 outgoing-range: 4096
 num-queries-per-thread: 2048
 ip-ratelimit: 0
 access-control: 127.0.0.0/8 allow
 local-zone: denied.test always_nxdomain
 local-zone: test nodefault
 local-zone: fresh.test transparent
%s
`, port, dir, local)
	return c.configured("unbound", mode, dir, text, func(file string) []string { return []string{"-d", "-c", file} })
}

// dnsdist asks the upstream, with a packet cache but for names that are always new.
func dnsdist(c *config, mode, port, up, dir string) (*exec.Cmd, error) {
	text := fmt.Sprintf(`setLocal("127.0.0.1:%[1]s", {reusePort=true})
addLocal("127.0.0.1:%[1]s", {reusePort=true})
setSecurityPollSuffix("")
newServer({address=%[2]q, checkInterval=60, sockets=8})
setMaxUDPOutstanding(65535)
addAction("denied.test.", RCodeAction(DNSRCode.NXDOMAIN))
`, port, up)
	if mode == "own" {
		text += `addAction("allowed.test.", SpoofAction({"198.18.0.1"}))` + "\n"
	} else {
		text += `addAction("fresh.test.", SetSkipCacheAction())` + "\n" + `getPool(""):setCache(newPacketCache(10000))` + "\n"
	}
	return c.configured("dnsdist", mode, dir, text, func(file string) []string { return []string{"--supervised", "--disable-syslog", "-C", file} })
}

// dnsmasq has one thread.
func dnsmasq(c *config, mode, port, up, dir string) (*exec.Cmd, error) {
	host, upPort, _ := net.SplitHostPort(up)
	text := fmt.Sprintf("port=%s\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser=root\npid-file=\ncache-size=10000\ndns-forward-max=10000\naddress=/denied.test/\nserver=%s#%s\n", port, host, upPort)
	if mode == "own" {
		text += "address=/allowed.test/198.18.0.1\n"
	}
	return c.configured("dnsmasq", mode, dir, text, func(file string) []string { return []string{"-k", "-C", file} })
}

// coredns forwards with a cache but for names that are always new, or answers by template.
// It has no list of its own: a zone for each name.
func coredns(c *config, mode, port, up, dir string) (*exec.Cmd, error) {
	const bind = "  bind 127.0.0.1\n"
	none := "  template ANY ANY {\n    rcode NXDOMAIN\n  }\n"
	own := "  template IN A {\n    answer \"{{ .Name }} 60 IN A 198.18.0.1\"\n  }\n"
	if mode == "forward" {
		own = "  cache\n  forward . " + up + "\n"
	}
	text := "denied.test:" + port + " {\n" + bind + none + "}\nallowed.test:" + port + " {\n" + bind + own + "}\n" +
		"fresh.test:" + port + " {\n" + bind + "  forward . " + up + "\n}\n"
	return c.configured("coredns", mode, dir, text, func(file string) []string { return []string{"-conf", file} })
}

// configured writes a server's configuration. Its error may be a *contest.Missing.
func (c *config) configured(name, mode, dir, text string, args func(file string) []string) (*exec.Cmd, error) {
	binary, err := contest.Find(c.peers, name)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, name+"-"+mode+".conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // #nosec: it may be read as another user
		return nil, err
	}
	return exec.Command(binary, args(file)...), nil
}
