//go:build linux

package netns

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
	"egressd/netns/capture/rules"
	"egressd/netns/nft"
)

// ethWorld is a captured namespace with an eth0: a dummy, or, where this
// kernel has none, another device that leads nowhere.
func ethWorld(t *testing.T, edit func(*nft.Table)) *capture.Doors {
	t.Helper()
	for _, kind := range []string{"dummy", "ifb"} {
		freshNamespace(t)
		l, err := capture.LinkKind(kind)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Dummy {
			continue
		}
		d := &capture.Doors{IPv6: l.IPv6}
		t.Cleanup(func() { d.Close() })
		if d.Refusals, err = capture.OpenRefusals(); err != nil {
			t.Fatal(err)
		}
		r := rules.Capture(dnsPort, testTransparent, true)
		if edit != nil {
			edit(&r)
		}
		apply(t, r)
		if err := d.Listen([]uint16{testTransparent}); err != nil {
			t.Fatal(err)
		}
		serveTCP(t, d.Transparent[0], "gate")
		return d
	}
	t.Skip("this kernel has neither dummy nor ifb devices")
	return nil
}

func TestDummyInterface(t *testing.T) {
	d := ethWorld(t, nil)
	eth, err := net.InterfaceByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if eth.Flags&net.FlagUp == 0 || eth.Flags&net.FlagLoopback != 0 {
		t.Errorf("flags %v", eth.Flags)
	}
	addrs, err := eth.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(addrs, []string{capture.OwnAddr + "/32"}, func(a net.Addr, s string) bool { return a.String() == s }) {
		t.Errorf("addresses %v: want ours alone", addrs)
	}
	for _, dst := range []string{"8.8.8.8:443", "192.0.2.1:80", "[2606:4700::1111]:443"} {
		if got, err := ask(dst, netip.Addr{}); err != nil || got != "gate "+dst {
			t.Errorf("%s: got %q, %v", dst, got, err)
		}
	}
	// The kernel itself said nothing on the new link.
	conn, err := pollable(d.Refusals)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		b := make([]byte, 4096)
		if n, err := unix.Read(int(fd), b); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("refused without anybody sending: %+v, %v", parseLog(b[:max(n, 0)]), err)
		}
	})
}

// A program that binds to the device gets past the local route, not further.
func TestBindToDevice(t *testing.T) {
	for name, edit := range map[string]func(*nft.Table){"": nil, "without the rule": without(`oifname != "lo"`)} {
		t.Run(name, func(t *testing.T) {
			ethWorld(t, edit)
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := unix.BindToDevice(fd, "eth0"); err != nil {
				t.Fatal(err)
			}
			err = unix.Sendto(fd, []byte("hello"), 0, &unix.SockaddrInet4{Addr: [4]byte{8, 8, 8, 8}, Port: 443})
			if edit == nil && !errors.Is(err, unix.EPERM) {
				t.Errorf("got %v", err)
			}
			if edit != nil && err != nil {
				t.Errorf("another rule stops it: %v", err)
			}
		})
	}
}

// A kernel without the device does without.
func TestAbsentDevice(t *testing.T) {
	freshNamespace(t)
	l, err := capture.LinkKind("no such kind")
	if err != nil || l.Dummy {
		t.Errorf("got %+v, %v", l, err)
	}
	if b, err := os.ReadFile("/proc/thread-self/net/dev"); err != nil || strings.Contains(string(b), "eth0") {
		t.Errorf("%v\n%s", err, b)
	}
}
