package netns

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Threat: who made a socket keeps a copy and makes it blocking, so that each
// read keeps a thread of who serves it.
func TestBlockingPacketConn(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	f, err := udp.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pc, err := PacketConn(f)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	fd := int(f.Fd()) // makes it blocking
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Fatalf("still non-blocking: %v", err)
	}
	if err := pc.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := pc.ReadFrom(make([]byte, 10))
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a timeout", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the read sleeps in the kernel")
		if _, err := udp.WriteTo([]byte("wake up"), udp.LocalAddr()); err != nil {
			t.Error(err)
		}
		<-done
	}
}
