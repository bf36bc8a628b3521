package ipc

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const bound = 64

func pair(t *testing.T, files int) (sender, receiver *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	sender = &Conn{FD: fds[0], SendBytes: bound, ReceiveBytes: bound}
	receiver = &Conn{FD: fds[1], SendBytes: bound, ReceiveBytes: bound, ReceiveFiles: files}
	t.Cleanup(func() { sender.Close(); receiver.Close() })
	return sender, receiver
}

func text(s *string) func(*Coder) { return func(c *Coder) { c.Text(s) } }

func open(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// As many descriptors as a side says it takes arrive, and not one more: what is
// too much is closed again.
func TestDescriptors(t *testing.T) {
	for _, c := range []struct{ takes, sent, got int }{{3, 3, 3}, {3, 0, 0}, {0, 2, 0}, {1, 1, 1}, {1, 2, -1}, {1, 5, -1}, {MaxFiles, MaxFiles, MaxFiles}} {
		sender, receiver := pair(t, c.takes)
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		fds := make([]int, c.sent)
		for i := range fds {
			fds[i] = int(null.Fd())
		}
		before, said, heard := open(t), "hello", ""
		if err := sender.Send(text(&said), fds...); err != nil {
			t.Fatal(err)
		}
		files, err := receiver.Receive(text(&heard))
		if c.got < 0 && err == nil || c.got >= 0 && (err != nil || heard != said || len(files) != c.got) {
			t.Errorf("%+v: %d files, %q, %v", c, len(files), heard, err)
		}
		CloseAll(files)
		if after := open(t); after != before {
			t.Errorf("%+v: %d descriptors, %d before", c, after, before)
		}
		null.Close()
	}
	sender, _ := pair(t, 0)
	said := ""
	if err := sender.Send(text(&said), make([]int, MaxFiles+1)...); err == nil {
		t.Error("more descriptors than the kernel passes")
	}
}

// Each side keeps to its own bound, whatever the other one does.
func TestBounds(t *testing.T) {
	sender, receiver := pair(t, 0)
	long, heard := strings.Repeat("x", bound-8+1), "" // behind eight bytes of length
	if err := sender.Send(text(&long)); err == nil {
		t.Error("too much was sent")
	}
	fits := long[1:]
	if err := sender.Send(text(&fits)); err != nil {
		t.Fatal(err)
	}
	if _, err := receiver.Receive(text(&heard)); err != nil || heard != fits {
		t.Fatalf("%q, %v", heard, err)
	}
	sender.SendBytes = 2 * bound
	if err := sender.Send(text(&long)); err != nil {
		t.Fatal(err)
	}
	if _, err := receiver.Receive(text(&heard)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("too much was received: %v", err)
	}
}

// A frame may come in pieces, and may end in the middle.
func TestPieces(t *testing.T) {
	sender, receiver := pair(t, 0)
	frame := "\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00\x02hi"
	go func() {
		for i := range frame {
			if _, err := unix.Write(sender.FD, []byte(frame[i:i+1])); err != nil {
				t.Error(err)
			}
		}
		if _, err := unix.Write(sender.FD, []byte(frame[:7])); err != nil {
			t.Error(err)
		}
		sender.Shutdown()
	}()
	heard := ""
	if _, err := receiver.Receive(text(&heard)); err != nil || heard != "hi" {
		t.Fatalf("%q, %v", heard, err)
	}
	if _, err := receiver.Receive(text(&heard)); !errors.Is(err, io.EOF) {
		t.Errorf("half a frame: %v", err)
	}
}
