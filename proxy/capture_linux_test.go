package proxy

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/policy"
)

// inNamespace runs f on a thread of its own in a new network namespace with lo
// up. The thread is never used again.
func inNamespace(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	var wg sync.WaitGroup
	unable := ""
	wg.Go(func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			unable = err.Error()
			return
		}
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			unable = err.Error() + string(out)
			return
		}
		f()
	})
	wg.Wait()
	if unable != "" {
		t.Skip("no network namespace: ", unable)
	}
}

// TestRedirected reads the original destination of connections that nftables
// redirects in a namespace, both families.
func TestRedirected(t *testing.T) {
	inNamespace(t, func() {
		for _, tt := range []struct{ listen, dst, family string }{
			{"127.0.0.1:0", "203.0.113.9:5432", "ip"},
			{"[::1]:0", "[2001:db8::9]:5432", "ip6"},
		} {
			ln, err := net.Listen("tcp", tt.listen)
			if err != nil {
				t.Error(err)
				return
			}
			defer ln.Close()
			port := netip.MustParseAddrPort(ln.Addr().String()).Port()
			rules := []string{
				"add table " + tt.family + " t",
				"add chain " + tt.family + " t out { type nat hook output priority -100 ; }",
				"add rule " + tt.family + " t out tcp dport 5432 redirect to :" + itoa(port),
			}
			dev := "local default dev lo"
			if out, err := exec.Command("ip", append(strings.Fields("-"+map[string]string{"ip": "4", "ip6": "6"}[tt.family]+" route add"), strings.Fields(dev)...)...).CombinedOutput(); err != nil {
				t.Logf("route: %s", out)
				return
			}
			cmd := exec.Command("nft", "-f", "-")
			cmd.Stdin = strings.NewReader(strings.Join(rules, "\n"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Logf("nft: %v: %s", err, out)
				return
			}
			out, err := net.Dial("tcp", tt.dst)
			if err != nil {
				t.Error(tt.dst, err)
				return
			}
			defer out.Close()
			in, err := ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer in.Close()
			if got, err := originalDst(in); err != nil || got.String() != tt.dst {
				t.Errorf("%v, %v; want %s", got, err, tt.dst)
			}
		}
	})
}

// TestListenerInAnotherNamespace forwards a port to the same port on this
// side's loopback: not a loop, the listener is elsewhere.
func TestListenerInAnotherNamespace(t *testing.T) {
	to := serveOrigin(t, echo)
	port := netip.MustParseAddrPort(to).Port()
	var ln net.Listener
	var client net.Conn
	inNamespace(t, func() {
		var err error
		if ln, err = net.Listen("tcp", to); err != nil {
			t.Error(err)
			return
		}
		if client, err = net.Dial("tcp", to); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		return
	}
	g := newGate(t, "127.0.0.1:"+itoa(port))
	g.leads(to, to)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.ServeFixed(ctx, ln, policy.HostFromAddr(mustAddr("127.0.0.1")), port); err != nil {
			t.Error(err)
		}
	})
	if !pingPong(client) {
		t.Errorf("no answer: %+v", g.decision(1))
	}
	client.Close()
	cancel()
	wg.Wait()
}
