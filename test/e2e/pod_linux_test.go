package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/test/iproute"
)

// Where a pod is: one at a time.
const (
	podWire = "e2epod" // the world's end of the pod's wire
	podAddr = "10.88.0.2"
)

// pod is a network namespace as a container runtime makes one for a pod: a
// loopback and an eth0, which is one end of a wire into the world. The sniffer
// is at the other end.
type pod struct {
	path    string // of the namespace
	calls   chan func()
	gone    chan struct{}
	sniffer *sniffer
}

// newPod makes a pod that ends with the test.
func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{calls: make(chan func()), gone: make(chan struct{})}
	ready := make(chan error)
	go p.live(ready)
	if err := <-ready; err != nil {
		t.Fatalf("the pod's namespace: %v", err)
	}
	t.Cleanup(p.end)
	if err := errors.Join(
		iproute.AddVeth(podWire, "eth0", p.path),
		iproute.AddAddr(podWire, "10.88.0.1/24"),
		iproute.AddAddr(podWire, "fd88::1/64"),
		iproute.Up(podWire),
		// All addresses are the world's own, but for the pod's.
		iproute.Route{To: netip.MustParsePrefix(podAddr + "/32"), Dev: podWire, First: true}.Add(),
		iproute.Route{To: netip.MustParsePrefix("fd88::2/128"), Dev: podWire, First: true}.Add(),
	); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"all", podWire} {
		_ = os.WriteFile("/proc/sys/net/ipv4/conf/"+file+"/rp_filter", []byte("0"), 0) // the positive control tells when it matters
	}
	p.do(func() {
		if err := errors.Join(iproute.Up("lo"), iproute.AddAddr("eth0", podAddr+"/24"), iproute.AddAddr("eth0", "fd88::2/64"), iproute.Up("eth0"),
			iproute.DefaultVia("10.88.0.1"), iproute.DefaultVia("fd88::1")); err != nil {
			t.Error(err)
		}
	})
	wire, err := net.InterfaceByName(podWire)
	if err != nil {
		t.Fatal(err)
	}
	if p.sniffer, err = startSniffer(wire.Index, podAddr); err != nil {
		t.Fatal(err)
	}
	return p
}

// live is the thread that is in the namespace, until end.
func (p *pod) live(ready chan<- error) {
	runtime.LockOSThread() // and never unlocked: the thread ends with this function
	err := unix.Unshare(unix.CLONE_NEWNET)
	p.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
	ready <- err
	if err != nil {
		return
	}
	defer close(p.gone)
	for f := range p.calls {
		f()
	}
}

// do runs f on a thread in the namespace. What f starts dies with the pod when
// it asks for a signal at its parent's death.
func (p *pod) do(f func()) {
	done := make(chan struct{})
	p.calls <- func() { defer close(done); f() }
	<-done
}

func (p *pod) end() {
	if p.sniffer != nil {
		_ = p.sniffer.close() // the record was read
	}
	_ = iproute.Delete(podWire) // goes with the namespace, some time
	close(p.calls)
	<-p.gone
}
