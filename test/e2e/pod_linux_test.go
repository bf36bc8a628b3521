package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	for _, args := range []string{
		"link add " + podWire + " type veth peer name eth0 netns " + p.path,
		"addr add 10.88.0.1/24 dev " + podWire,
		"-6 addr add fd88::1/64 dev " + podWire + " nodad",
		"link set " + podWire + " up",
		// All addresses are the world's own, but for the pod's.
		"route add " + podAddr + "/32 dev " + podWire + " table local",
		"-6 route add fd88::2/128 dev " + podWire + " table local",
	} {
		ip(t, args)
	}
	for _, file := range []string{"all", podWire} {
		_ = os.WriteFile("/proc/sys/net/ipv4/conf/"+file+"/rp_filter", []byte("0"), 0) // the positive control tells when it matters
	}
	p.do(func() {
		for _, args := range []string{
			"link set lo up",
			"addr add " + podAddr + "/24 dev eth0",
			"-6 addr add fd88::2/64 dev eth0 nodad",
			"link set eth0 up",
			"route add default via 10.88.0.1",
			"-6 route add default via fd88::1",
		} {
			ip(t, args)
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

// ip runs ip(8) in the namespace of the calling thread.
func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Errorf("ip %s: %v: %s", args, err, out)
	}
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
	_ = exec.Command("ip", "link", "del", podWire).Run() // goes with the namespace, some time
	close(p.calls)
	<-p.gone
}
