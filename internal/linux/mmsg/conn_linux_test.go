package mmsg

import (
	"errors"
	"net"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Packets go out and come in many at a time, and boxes are used again.
func TestConn(t *testing.T) {
	pc, _ := open(t, "udp4", "127.0.0.1:0")
	_ = pc.SetReadBuffer(1 << 20)
	c := dial(t, pc.LocalAddr().String()).(*net.UDPConn)
	many, err := Connected(c)
	if err != nil {
		t.Fatal(err)
	}
	const packets = Most + 5
	var out [][]byte
	for i := range packets {
		out = append(out, []byte{byte(i), 'x'})
	}
	if err := many.Write(out); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 10)
	for i := range packets {
		n, from, err := pc.ReadFrom(buf)
		if err != nil || n != 2 || int(buf[0]) != i {
			t.Fatalf("packet %d: %x, %v", i, buf[:n], err)
		}
		if _, err := pc.WriteTo(buf[:1], from); err != nil {
			t.Fatal(err)
		}
	}
	var boxes Boxes
	var got []int
	for len(got) < packets {
		box, err := many.Read(&boxes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range box.Len() {
			if p := box.Packet(i); len(p) == 1 {
				got = append(got, int(p[0]))
			}
		}
		boxes.Put(box)
	}
	if !slices.IsSorted(got) || len(got) != packets {
		t.Errorf("%v", got)
	}
}

// An error of the peer's machine ends a read, and a closed socket ends both.
func TestConnErrors(t *testing.T) {
	pc, _ := open(t, "udp4", "127.0.0.1:0")
	c := dial(t, pc.LocalAddr().String()).(*net.UDPConn)
	_ = pc.Close()
	many, err := Connected(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := many.Write([][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	var boxes Boxes
	if _, err := many.Read(&boxes); !errors.Is(err, unix.ECONNREFUSED) {
		t.Error(err)
	}
	_ = c.Close()
	if _, err := many.Read(&boxes); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := many.Write([][]byte{{1}}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
