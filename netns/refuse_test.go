//go:build linux

package netns

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/nft"
)

// sendUDP sends to addr and reports how the kernel answers.
func sendUDP(addr string) error {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(context.Background(), "udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 64))
	return err
}

// listenInner receives what reaches a local program at addr.
func listenInner(t *testing.T, addr string) net.PacketConn {
	t.Helper()
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(t.Context(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	return pc
}

func arrived(t *testing.T, pc net.PacketConn, wait time.Duration) bool {
	t.Helper()
	if err := pc.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	_, _, err := pc.ReadFrom(make([]byte, 64))
	return err == nil
}

var udpTargets = []string{
	"8.8.8.8:443", "1.1.1.1:80", "10.0.0.1:123", "192.0.2.1:8080", "169.254.169.254:80", "8.8.8.8:1", "8.8.8.8:65535", "8.8.8.8:54",
	"[2606:4700::1111]:443", "[fd00::1]:5353",
}

// QUIC falls back at once: the first read says connection refused.
func TestUDPIsRefused(t *testing.T) {
	newWorld(t, nil)
	for _, dst := range udpTargets {
		start := time.Now()
		if err := sendUDP(dst); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%s: %v", dst, err)
		}
		if took := time.Since(start); took > patience/2 {
			t.Errorf("%s: refused after %v", dst, took)
		}
	}
}

// Even a program inside that listens on every address does not get it.
func TestUDPDoesNotArrive(t *testing.T) {
	for _, dst := range []string{"8.8.8.8:443", "[2606:4700::1111]:443", "192.0.2.1:443"} {
		t.Run(dst, func(t *testing.T) {
			newWorld(t, nil)
			pc := listenInner(t, "[::]:443")
			if err := sendUDP(dst); !errors.Is(err, unix.ECONNREFUSED) {
				t.Error(err)
			}
			if arrived(t, pc, 50*time.Millisecond) {
				t.Error("arrived")
			}
		})
		t.Run(dst+" without the rule", func(t *testing.T) {
			newWorld(t, func(r *nft.Table) {
				without("goto refuse")(r)
				r.Chains[len(r.Chains)-1].Base.Accept = true
			})
			pc := listenInner(t, "[::]:443")
			_ = sendUDPOnly(dst)
			if !arrived(t, pc, patience) {
				t.Error("did not arrive: another rule stops it, so the test above proves nothing")
			}
		})
	}
}

func sendUDPOnly(addr string) error {
	var d net.Dialer
	c, err := d.DialContext(context.Background(), "udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("hello"))
	return err
}

// The policy alone holds when the rule that answers is gone.
func TestPolicyDrops(t *testing.T) {
	newWorld(t, without("goto refuse"))
	pc := listenInner(t, "0.0.0.0:443")
	if err := sendUDPOnly("8.8.8.8:443"); err != nil {
		t.Fatal(err)
	}
	if arrived(t, pc, 50*time.Millisecond) {
		t.Error("arrived")
	}
}

func TestLocalUDPPasses(t *testing.T) {
	newWorld(t, nil)
	for _, at := range []string{"127.0.0.1:8125", "127.9.9.9:5060", "[::1]:8125"} {
		pc := listenInner(t, at)
		if err := sendUDPOnly(at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if !arrived(t, pc, patience) {
			t.Errorf("%s: did not arrive", at)
		}
	}
	if err := sendUDP("127.0.0.1:9"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a closed local port: %v", err)
	}
}

func TestUDPLiteIsRefused(t *testing.T) {
	newWorld(t, nil)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDPLITE)
	if err != nil {
		t.Skipf("no UDP-Lite: %v", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: 53}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(fd, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	tv := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Read(fd, make([]byte, 16)); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}
