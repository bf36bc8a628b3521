package iproute

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestNetwork builds two networks with a wire between them, in namespaces of its
// own, and sends a packet to an address that is the other's by route alone.
func TestNetwork(t *testing.T) {
	if os.Getenv("TEST_IPROUTE") == "" {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestNetwork$", "-test.v")
		cmd.Env = append(os.Environ(), "TEST_IPROUTE=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			t.Skipf("this machine allows no user namespaces: %v", err)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	other := exec.CommandContext(t.Context(), "sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	for _, step := range []error{
		Up("lo"),
		Route{To: All4, Dev: "lo", Local: true}.Add(),
		Route{To: All6, Dev: "lo", Local: true}.Add(),
		AddVeth("near", "far", fmt.Sprintf("/proc/%d/ns/net", other.Process.Pid)),
		AddAddr("near", "10.9.0.1/24"),
		AddAddr("near", "fd09::1/64"),
		Up("near"),
		Route{To: netip.MustParsePrefix("10.9.0.2/32"), Dev: "near", First: true}.Add(),
		DefaultVia("10.9.0.7"),
		DefaultVia("fd09::7"),
	} {
		if step != nil {
			t.Error(step)
		}
	}
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	try := func(host string) error {
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	hole := Route{To: netip.MustParsePrefix("203.0.113.9/32"), Hole: true, First: true}
	if err := errors.Join(try("203.0.113.9"), try("2001:db8::9"), hole.Add()); err != nil {
		t.Error(err)
	}
	if err := try("203.0.113.9"); err == nil {
		t.Error("a connection through a hole")
	}
	if err := errors.Join(hole.Remove(), try("203.0.113.9")); err != nil {
		t.Error(err)
	}
	if err := AddAddr("near", "10.9.0.1/24"); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("the same address again: %v", err)
	}
	if err := errors.Join(Delete("near"), Up("lo")); err != nil {
		t.Error(err)
	}
	if err := Delete("near"); err == nil {
		t.Error("a link that is not there was deleted")
	}
}
