//go:build linux && system

package proxy

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"egressd/policy"
	"egressd/policy/upstream"
)

// realProxy is a proxy of companies, as Debian has it.
type realProxy struct {
	name string
	args func(conf string) []string
	conf func(t *testing.T, dir, port string) string
}

var realProxies = []realProxy{
	{"squid", func(conf string) []string { return []string{"-N", "-f", conf} }, func(t *testing.T, dir, port string) string {
		hash, err := exec.Command("openssl", "passwd", "-apr1", "hunter2").Output()
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir+"/passwd", "joe:"+string(hash))
		return "http_port 127.0.0.1:" + port + "\npid_filename none\ncache deny all\naccess_log none\ncache_log " + dir + "/log\ncoredump_dir " + dir + `
auth_param basic program /usr/lib/squid/basic_ncsa_auth ` + dir + `/passwd
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
shutdown_lifetime 0 seconds
`
	}},
	{"tinyproxy", func(conf string) []string { return []string{"-d", "-c", conf} }, func(_ *testing.T, _, port string) string {
		return "Port " + port + "\nListen 127.0.0.1\nAllow 127.0.0.1\nBasicAuth joe hunter2\nMaxClients 20\nLogLevel Error\n"
	}},
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// start starts p and reports where it listens.
func (p realProxy) start(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath(p.name)
	if err != nil {
		t.Fatalf("%v: install it, as .ci/run does", err)
	}
	ln := listenLocal(t)
	at := ln.Addr().(*net.TCPAddr)
	_ = ln.Close()
	dir, err := os.MkdirTemp("", "upstream")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := filepath.Join(dir, "conf")
	write(t, conf, p.conf(t, dir, strconv.Itoa(at.Port)))
	if u, err := user.Lookup("proxy"); err == nil && os.Geteuid() == 0 { // who squid becomes
		uid, _ := strconv.Atoi(u.Uid)
		_ = os.Chmod(dir, 0o755)
		_ = os.Chown(dir, uid, -1)
	}
	cmd := exec.Command(program, p.args(conf)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) { // polling: it says nothing when it is ready
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = c.Close()
			return at.String()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", p.name, err)
		}
	}
}

// ownAddress is an address of this machine that is not its loopback, which no upstream
// proxy is asked for.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return p.Addr()
		}
	}
	t.Skip("this machine has no address but its loopback, where a proxy could reach an origin")
	return netip.Addr{}
}

// TestRealProxies goes through squid and tinyproxy, with a login, without and with a
// wrong one, by every door. What they cannot reach is told as that.
func TestRealProxies(t *testing.T) {
	own := ownAddress(t)
	ln, err := net.Listen("tcp", netip.AddrPortFrom(own, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				echo(c)
			}()
		}
	}()
	port := uint16(ln.Addr().(*net.TCPAddr).Port)
	for _, p := range realProxies {
		t.Run(p.name, func(t *testing.T) {
			at := p.start(t)
			for login, want := range map[string]string{"joe:hunter2": "allowed", "": "upstream_proxy_login", "joe:wrong": "upstream_proxy_login"} {
				for _, door := range clients() {
					g := newGate(t)
					g.Upstream = func(*upstream.Proxy) (UpstreamAccess, error) { return UpstreamAccess{Login: login}, nil }
					g.store(&policy.Document{Upstream: upstream.Section{URL: "http://" + proxyAddr}}, fmt.Sprintf("%s:%d", own, port), own.String()+":1")
					g.leads(proxyAddr, at)
					g.start()
					c, err := door.open(g, own.String(), port)
					if want == "allowed" && (err != nil || ping(t, c) != "ping") {
						t.Errorf("%s: %v", door.name, err)
					}
					if d := g.decision(1); d.Reason != want || strings.Contains(d.Error, "hunter2") {
						t.Errorf("%s, login %q: %+v", door.name, login, d)
					}
					if login == "joe:hunter2" && door.name == "connect" {
						_, _ = door.open(g, own.String(), 1)
						if d := g.decision(2); d.Reason != "destination_unavailable" && d.Reason != "upstream_proxy_refused" {
							t.Errorf("a closed port: %+v", d)
						}
					}
				}
			}
		})
	}
}
