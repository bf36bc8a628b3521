//go:build linux

package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/rules"
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
			newWorld(t, func(r *rules.Set) {
				without("goto refuse")(r)
				r.Chains[len(r.Chains)-1].Base.Accept = true
				r.Chains[len(r.Chains)-1].Base.Text = "unused"
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

// No reply can be sent for these, so sending fails.
func TestMulticastIsRefused(t *testing.T) {
	targets := []string{"224.0.0.251:5353", "239.255.255.250:1900", "[ff02::fb%lo]:5353", "[ff0e::1]:443"}
	newWorld(t, nil)
	for _, dst := range targets {
		if err := sendUDPOnly(dst); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v", dst, err)
		}
	}
	if err := broadcast(); !errors.Is(err, unix.EPERM) {
		t.Errorf("broadcast: %v", err)
	}
}

func TestMulticastWithoutItsRule(t *testing.T) {
	newWorld(t, func(r *rules.Set) {
		without("224.0.0.0/4")(r)
		without("255.255.255.255")(r)
		without("ff00::/8")(r)
	})
	for _, dst := range []string{"224.0.0.251:5353", "[ff0e::1]:443"} {
		if err := sendUDPOnly(dst); err != nil {
			t.Errorf("%s: %v", dst, err)
		}
	}
	if err := broadcast(); err != nil {
		t.Errorf("broadcast: %v", err)
	}
}

func broadcast() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("hello"), 0, &unix.SockaddrInet4{Addr: [4]byte{255, 255, 255, 255}, Port: 9})
}

// raw opens a raw socket, as only root of the namespace can.
func raw(t *testing.T, family, proto int) int {
	t.Helper()
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	tv := unix.NsecToTimeval(int64(200 * time.Millisecond))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		t.Fatal(err)
	}
	return fd
}

// ping reports whether an echo reply (RFC 792, RFC 4443) came.
func ping(t *testing.T, dst string) bool {
	t.Helper()
	a := netip.MustParseAddr(dst)
	if a.Is4() {
		fd := raw(t, unix.AF_INET, unix.IPPROTO_ICMP)
		echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // type, code, checksum
		if err := unix.Sendto(fd, echo, 0, &unix.SockaddrInet4{Addr: a.As4()}); err != nil {
			return false
		}
		return sees(fd, func(b []byte) bool { return len(b) > 20 && b[20] == 0 })
	}
	fd := raw(t, unix.AF_INET6, unix.IPPROTO_ICMPV6)
	echo := []byte{128, 0, 0, 0, 0, 0, 0, 0} // the kernel fills in the checksum
	if err := unix.Sendto(fd, echo, 0, &unix.SockaddrInet6{Addr: a.As16()}); err != nil {
		return false
	}
	return sees(fd, func(b []byte) bool { return len(b) > 0 && b[0] == 129 })
}

// sees reads until a packet is wanted or none comes.
func sees(fd int, wanted func([]byte) bool) bool {
	b := make([]byte, 1500)
	for range 16 {
		n, _, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			return false
		}
		if wanted(b[:n]) {
			return true
		}
	}
	return false
}

func TestPingIsNotAnswered(t *testing.T) {
	for _, dst := range []string{"8.8.8.8", "192.0.2.1", "2606:4700::1111"} {
		t.Run(dst, func(t *testing.T) {
			newWorld(t, nil)
			if ping(t, dst) {
				t.Error("answered")
			}
		})
		t.Run(dst+" without the rule", func(t *testing.T) {
			newWorld(t, func(r *rules.Set) {
				without("goto refuse")(r)
				r.Chains[len(r.Chains)-1].Base.Accept = true
			})
			if !ping(t, dst) {
				t.Error("not answered: another rule stops it, so the test above proves nothing")
			}
		})
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

// What is refused is told, with protocol, address and port.
func TestRefusalsAreReported(t *testing.T) {
	w := newWorld(t, nil)
	got := make(chan Refusal, 64)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	dup, err := pollable(w.doors.Refusals)
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- ServeRefusals(ctx, dup, func(r Refusal) { got <- r }) }()

	_ = sendUDPOnly("8.8.8.8:443")
	_ = sendUDPOnly("[2606:4700::1111]:443")
	_ = sendUDPOnly("224.0.0.251:5353")
	ping(t, "9.9.9.9")
	sctp := raw(t, unix.AF_INET, unix.IPPROTO_SCTP)
	header := binary.BigEndian.AppendUint16([]byte{0x12, 0x34}, 9899) // RFC 9260 section 3
	if err := unix.Sendto(sctp, append(header, make([]byte, 8)...), 0, &unix.SockaddrInet4{Addr: [4]byte{8, 8, 4, 4}}); err != nil {
		t.Fatal(err)
	}
	gre := raw(t, unix.AF_INET, unix.IPPROTO_GRE)
	if err := unix.Sendto(gre, make([]byte, 8), 0, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	want := []Refusal{
		{Proto: "udp", Dst: netip.MustParseAddr("8.8.8.8"), Port: 443},
		{Proto: "udp", Dst: netip.MustParseAddr("2606:4700::1111"), Port: 443},
		{Proto: "udp", Dst: netip.MustParseAddr("224.0.0.251"), Port: 5353},
		{Proto: "icmp", Dst: netip.MustParseAddr("9.9.9.9")},
		{Proto: "sctp", Dst: netip.MustParseAddr("8.8.4.4"), Port: 9899},
		{Proto: "gre", Dst: netip.MustParseAddr("127.0.0.1")},
	}
	timeout := time.After(patience)
	for len(want) > 0 {
		select {
		case r := <-got:
			if !r.Src.IsValid() {
				t.Errorf("%v: no source", r)
			}
			r.Src = netip.Addr{}
			i := slices.Index(want, r)
			if i < 0 {
				t.Errorf("unexpected %+v", r)
				continue
			}
			want = slices.Delete(want, i, i+1)
		case <-timeout:
			t.Fatalf("never reported: %+v", want)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("ServeRefusals: %v", err)
	}
	if _, err := dup.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// What comes faster than it is recorded is counted: a packet of a flood is on
// record in an event of its own or in a sum.
func TestRefusalsBeyondTheRateAreCounted(t *testing.T) {
	for _, n := range []int{400, 20000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			w := newWorld(t, nil)
			var mu sync.Mutex
			var listed, counted, sums int
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() {
				served <- ServeRefusals(ctx, w.doors.Refusals, func(r Refusal) {
					mu.Lock()
					defer mu.Unlock()
					if listed++; r.Count > 0 {
						listed, counted, sums = listed-1, counted+int(r.Count), sums+1
					}
				})
			}()
			start := time.Now()
			c, err := net.Dial("udp", "224.0.0.251:5353") // no reply that sending could wait for
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range n {
				if _, err := c.Write([]byte("x")); !errors.Is(err, unix.EPERM) {
					t.Fatal(err)
				}
			}
			took := time.Since(start)
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
			// Of what the kernel drops at the very end no number tells.
			if sum := listed + counted; sum > n || sum < n*9/10 || n < 500 && listed != n {
				t.Errorf("%d listed, %d counted of %d", listed, counted, n)
			}
			if most := 500 + 101*int(took.Seconds()+1); listed > most || n > most && counted == 0 {
				t.Errorf("%d listed, %d counted of %d in %v", listed, counted, n, took)
			}
			if sums > int(took.Seconds())+2 {
				t.Errorf("%d sums in %v, want one a second", sums, took)
			}
		})
	}
}

// Records that the kernel had to drop, as nobody read them, are counted, too.
func TestRefusalsDroppedAreCounted(t *testing.T) {
	w := newWorld(t, nil)
	c, err := net.Dial("udp", "224.0.0.251:5353")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const n = 1000
	if err := unix.SetsockoptInt(int(w.doors.Refusals.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096); err != nil {
		t.Fatal(err)
	}
	for range n {
		_, _ = c.Write([]byte("x"))
	}
	got := make(chan Refusal, 2*n)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeRefusals(ctx, w.doors.Refusals, func(r Refusal) { got <- r }) }()
	first := <-got
	listed, counted := 1, int64(first.Count)
	again := time.NewTicker(10 * time.Millisecond) // until there are tokens for a record, whose number shows the gap
	defer again.Stop()
	end := time.After(patience)
	for known := false; !known; {
		select {
		case r := <-got:
			if known = r.Count > 0; known {
				counted += r.Count
			} else {
				listed++
			}
		case <-again.C:
			_, _ = c.Write([]byte("x"))
		case <-end:
			t.Fatalf("%d listed, %d counted of %d, and nothing shows the gap", listed, counted, n)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if counted < n/4 || listed > n/4*3 {
		t.Errorf("%d listed, %d counted of %d", listed, counted, n)
	}
}
