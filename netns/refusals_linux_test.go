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
)

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
