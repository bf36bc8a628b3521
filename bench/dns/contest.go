package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 20 * time.Second
	stopPatience  = 5 * time.Second
)

// contestant is one DNS server.
type contestant struct {
	name string
	addr string
	cmd  *exec.Cmd
	log  string
}

func (c *contestant) start(dir string) error {
	c.log = filepath.Join(dir, c.name+".log")
	f, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	c.cmd.Stdout, c.cmd.Stderr = f, f
	c.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	return c.cmd.Start()
}

func (c *contestant) stop() {
	if c.cmd.Process == nil {
		return
	}
	kill := time.AfterFunc(stopPatience, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
	_ = c.cmd.Wait()
}

// cpu reports the processor time that c has used, user and system.
func (c *contestant) cpu() (total time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("%s has ended, see %s", c.name, c.log)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest) // from field 3 of proc_pid_stat(5) on
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is too short")
	}
	for _, ticks := range fields[11:13] {
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100
	}
	return total, nil
}

// freePort reports a port that UDP and TCP have free.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	pc, err := net.ListenPacket("udp", ln.Addr().String())
	if err != nil {
		return "", err
	}
	defer pc.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

func build(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "egressd")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out, "egressd/cmd/egressd")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build egressd: %w: %s", err, text)
	}
	return out, nil
}

func startUpstream(ctx context.Context, dir string) (*contestant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &contestant{name: "upstream", addr: "127.0.0.1:" + port}
	c.cmd = exec.CommandContext(ctx, self, upstreamFlag, c.addr)
	return c, c.start(dir)
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
func unbound(mode, port, up, dir string) (*exec.Cmd, error) {
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
	return configured("unbound", mode, dir, text, func(file string) []string { return []string{"-d", "-c", file} })
}

// dnsdist asks the upstream, with a packet cache but for names that are always new.
func dnsdist(mode, port, up, dir string) (*exec.Cmd, error) {
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
	return configured("dnsdist", mode, dir, text, func(file string) []string { return []string{"--supervised", "--disable-syslog", "-C", file} })
}

// dnsmasq has one thread.
func dnsmasq(mode, port, up, dir string) (*exec.Cmd, error) {
	host, upPort, _ := net.SplitHostPort(up)
	text := fmt.Sprintf("port=%s\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\nuser=root\npid-file=\ncache-size=10000\ndns-forward-max=10000\naddress=/denied.test/\nserver=%s#%s\n", port, host, upPort)
	if mode == "own" {
		text += "address=/allowed.test/198.18.0.1\n"
	}
	return configured("dnsmasq", mode, dir, text, func(file string) []string { return []string{"-k", "-C", file} })
}

// configured writes a server's configuration; nil without an error if the server is
// not installed.
func configured(name, mode, dir, text string, args func(file string) []string) (*exec.Cmd, error) {
	binary, err := exec.LookPath(name)
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			return nil, nil
		}
	}
	file := filepath.Join(dir, name+"-"+mode+".conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { // #nosec: it may be read as another user
		return nil, err
	}
	return exec.Command(binary, args(file)...), nil
}
