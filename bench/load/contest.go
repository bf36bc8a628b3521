package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"egressd/bench/contest"
)

// contestant is one way to the origin: a proxy, or none.
type contestant struct{ contest.Contestant }

// peer is what a proxy is made of.
type peer struct {
	name string
	cmd  func(p *place) (*exec.Cmd, error)
	http bool // it makes no tunnels
	once bool // a request a connection
	open bool // it refuses nothing
}

// place is where a peer is to run.
type place struct {
	cf   *config
	name string
	dir  string // its own
	port string
	o    *origin
}

// peers are all that there are, in the order of the output.
func peers(cf *config) []peer {
	all := []peer{
		{name: "relay", cmd: relayC},
		{name: "egressd", cmd: func(p *place) (*exec.Cmd, error) { return egressd(p, cf.egressd) }},
		{name: "egressd-other", cmd: func(p *place) (*exec.Cmd, error) { return egressd(p, cf.other) }},
		{name: "bare", cmd: bare, open: true},
		{name: "tinyproxy", cmd: tinyproxy, once: true},
		{name: "squid", cmd: func(p *place) (*exec.Cmd, error) { return squid(p, 1) }},
		{name: "squid-2", cmd: func(p *place) (*exec.Cmd, error) { return squid(p, 2) }},
		{name: "haproxy", cmd: haproxy, http: true},
		{name: "smokescreen", cmd: smokescreen},
		{name: "goproxy", cmd: goproxy, open: true},
	}
	if cf.other == "" {
		all = append(all[:2], all[3:]...)
	}
	return all
}

// make prepares a contestant. Its error may be a *contest.Missing.
func (p peer) make(cf *config, dir string, o *origin) (*contestant, error) {
	port, err := contest.FreePort()
	if err != nil {
		return nil, err
	}
	at := &place{cf: cf, name: p.name, dir: filepath.Join(dir, "of-"+p.name), port: port, o: o}
	if err := errors.Join(os.Mkdir(at.dir, 0o777), os.Chmod(at.dir, 0o777)); err != nil { // #nosec: some give root up
		return nil, err
	}
	cmd, err := p.cmd(at)
	if err != nil {
		return nil, err
	}
	c := contest.Contestant{Name: p.name, Addr: net.JoinHostPort("127.0.0.1", port), Cmd: cmd, HTTPOnly: p.http, OneShot: p.once, NoPolicy: p.open}
	return &contestant{c}, nil
}

// write makes a file of p.
func (p *place) write(name, text string) (string, error) {
	file := filepath.Join(p.dir, name)
	return file, os.WriteFile(file, []byte(text), 0o644) // #nosec: it may be read as another user
}

// find looks for p's program.
func (p *place) find(name string) (string, error) { return contest.Find(p.cf.peers, name) }

// rules is how many hosts every policy allows besides the origin.
const rules = 41

//go:embed bound/relay.c
var relaySource string

// relayC is the bound: a relay in C, built here. See bound/relay.c.
func relayC(p *place) (*exec.Cmd, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return nil, &contest.Missing{What: "missing", Who: "relay", Why: "there is no C compiler (cc)"}
	}
	source, err := p.write("relay.c", relaySource)
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(p.dir, "relay")
	if text, err := exec.CommandContext(context.Background(), cc, "-O2", "-pthread", "-o", binary, source).CombinedOutput(); err != nil { // #nosec G204 -- our own source
		return nil, fmt.Errorf("cc: %w: %s", err, text)
	}
	return exec.Command(binary, p.port), nil
}

// egressd is the daemon as it is used: rules in a file, each decision in a file before a
// byte passes, metrics on, names in TLS judged.
func egressd(p *place, binary string) (*exec.Cmd, error) {
	var b strings.Builder
	b.WriteString("allow:\n")
	for _, ln := range []net.Listener{p.o.answers, p.o.source, p.o.http} {
		fmt.Fprintf(&b, "  - %q\n", ln.Addr())
	}
	for i := range rules {
		fmt.Fprintf(&b, "  - host%d.example.com\n", i)
	}
	policy, err := p.write("policy.yaml", b.String())
	if err != nil {
		return nil, err
	}
	return exec.Command(binary, "--policy", policy, "--listen", "127.0.0.1:"+p.port, "--admin", "127.0.0.1:0",
		"--events", filepath.Join(p.dir, "events.jsonl")), nil
}

// squid is Debian's squid with an allow list, that caches nothing; each request goes to
// its access log.
func squid(p *place, workers int) (*exec.Cmd, error) {
	binary, err := p.find("squid")
	if err != nil {
		return nil, err
	}
	args := []string{"-N"}
	if workers > 1 {
		args = []string{"--foreground"}
	}
	var hosts strings.Builder
	for i := range rules {
		fmt.Fprintf(&hosts, " host%d.example.com", i)
	}
	conf, err := p.write("squid.conf", fmt.Sprintf(`http_port 127.0.0.1:%s
workers %d
acl listed dstdomain -n 127.0.0.1%s
http_access allow listed
http_access deny all
cache deny all
cache_mem 8 MB
access_log stdio:%[4]s/access.log
cache_log %[4]s/cache.log
pid_filename %[4]s/pid
coredump_dir %[4]s
netdb_filename none
shutdown_lifetime 0 seconds
max_filedescriptors 20000
`, p.port, workers, hosts.String(), p.dir))
	return exec.Command(binary, append(args, "-f", conf, "-n", "bench"+p.port)...), err
}

// tinyproxy has an allow list of expressions, and no log: it syncs every line to the disk.
func tinyproxy(p *place) (*exec.Cmd, error) {
	binary, err := p.find("tinyproxy")
	if err != nil {
		return nil, err
	}
	list := "^127\\.0\\.0\\.1$\n"
	for i := range rules {
		list += fmt.Sprintf("^host%d\\.example\\.com$\n", i)
	}
	filter, err := p.write("filter", list)
	if err != nil {
		return nil, err
	}
	conf, err := p.write("tinyproxy.conf", fmt.Sprintf(`Port %s
Listen 127.0.0.1
Timeout 600
MaxClients 20000
LogFile "%s/tinyproxy.log"
LogLevel Warning
Filter "%s"
FilterExtended On
FilterDefaultDeny Yes
DisableViaHeader Yes
`, p.port, p.dir, filter))
	return exec.Command(binary, "-d", "-c", conf), err
}

// haproxy forwards requests, as it is no forward proxy by trade: the address in the URL
// is the server's. It has a list and a log to a file descriptor.
func haproxy(p *place) (*exec.Cmd, error) {
	binary, err := p.find("haproxy")
	if err != nil {
		return nil, err
	}
	list := "127.0.0.1\n"
	for i := range rules {
		list += fmt.Sprintf("host%d.example.com\n", i)
	}
	hosts, err := p.write("hosts", list)
	if err != nil {
		return nil, err
	}
	conf, err := p.write("haproxy.cfg", fmt.Sprintf(`global
  nbthread 2
  maxconn 8000
defaults
  mode http
  log stdout format raw local0
  option httplog
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:%s
  acl listed hdr(host),host_only -f %s
  http-request deny unless listed
  http-request set-dst url_ip
  http-request set-dst-port url_port
  http-request set-uri %%[path]
  default_backend out
backend out
  http-reuse always
  server any 0.0.0.0:0
`, p.port, hosts))
	return exec.Command(binary, "-db", "-f", conf), err
}

// smokescreen has an access list; everybody has one role.
func smokescreen(p *place) (*exec.Cmd, error) {
	binary, err := p.find("smokescreen")
	if err != nil {
		return nil, err
	}
	list := "version: v1\nservices: []\ndefault:\n  project: bench\n  action: enforce\n  allowed_domains:\n    - 127.0.0.1\n"
	for i := range rules {
		list += fmt.Sprintf("    - host%d.example.com\n", i)
	}
	acl, err := p.write("acl.yaml", list)
	if err != nil {
		return nil, err
	}
	conf, err := p.write("config.yaml", "allow_missing_role: true\n")
	return exec.Command(binary, "--config-file", conf, "--listen-ip", "127.0.0.1", "--listen-port", p.port,
		"--egress-acl-file", acl, "--unsafe-allow-private-ranges"), err
}

// goproxy is that library's first example: a Go proxy without a policy or a log.
func goproxy(p *place) (*exec.Cmd, error) {
	binary, err := p.find("goproxy")
	return exec.Command(binary, "127.0.0.1:"+p.port), err
}
