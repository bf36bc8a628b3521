package proxy

import (
	"context"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/policy"
	"egressd/test/iproute"
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
		if err := iproute.Up("lo"); err != nil {
			unable = err.Error()
			return
		}
		f()
	})
	wg.Wait()
	if unable != "" {
		t.Skip("no network namespace: ", unable)
	}
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
