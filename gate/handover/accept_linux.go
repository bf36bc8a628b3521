package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acceptPatience is the longest that an accept may take, which does not wait.
const acceptPatience = 2 * time.Second

var errBlocking = errors.New("its launcher has made the socket blocking, which would cost the daemon a thread")

// door accepts on a listening socket of which the launcher may hold a copy.
//
// Threat: a launcher keeps a copy of its listeners and clears O_NONBLOCK, which
// belongs to the open file and not to a descriptor: each accept then holds a
// thread of the daemon, until no thread is left and the daemon dies with all that
// it serves -> the flag is checked before every accept; a launcher that clears it
// just after the check holds few threads, and those until the socket is shut down.
// Left over: new connections of the same user's sandboxes wait meanwhile.
type door struct {
	handle *net.TCPListener // never accepts
	f      *os.File         // of the same socket
	raw    syscall.RawConn  // of f
	turns  []chan struct{}  // tokens for being in accept
	closed atomic.Bool
}

// newDoor makes a door of t, and owns t from then on.
func newDoor(t *net.TCPListener, turns ...chan struct{}) (net.Listener, error) {
	f, err := t.File()
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &door{handle: t, f: f, raw: raw, turns: turns}, nil
}

// SyscallConn is for finding out which namespace the door is in.
func (d *door) SyscallConn() (syscall.RawConn, error) { return d.handle.SyscallConn() }

// Addr implements net.Listener.
func (d *door) Addr() net.Addr { return d.handle.Addr() }

// Close implements net.Listener, and ends the socket itself: copies too.
func (d *door) Close() error {
	if d.closed.Swap(true) {
		return net.ErrClosed
	}
	shut(d.handle)
	return errors.Join(d.f.Close(), d.handle.Close())
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	fd, err := -1, error(nil)
	waitErr := d.raw.Read(func(s uintptr) bool {
		fd, err = d.accept(int(s))
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case d.closed.Load() && (waitErr != nil || err != nil):
		return nil, net.ErrClosed
	case waitErr != nil:
		return nil, d.opError(waitErr)
	case err != nil:
		return nil, d.opError(err)
	}
	f := os.NewFile(uintptr(fd), "")
	defer f.Close()
	return net.FileConn(f)
}

// accept is accept4, in turn.
func (d *door) accept(s int) (fd int, err error) {
	for _, t := range d.turns {
		t <- struct{}{} // free again within twice acceptPatience
		defer func() { <-t }()
	}
	for {
		flags, err := unix.FcntlInt(uintptr(s), unix.F_GETFL, 0)
		if err != nil {
			return -1, fmt.Errorf("fcntl: %w", err)
		}
		if flags&unix.O_NONBLOCK == 0 {
			return -1, errBlocking
		}
		done := d.watchAccept()
		fd, _, err = unix.Accept4(s, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		done()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
			return fd, err
		}
	}
}

// watchAccept shuts the socket down every acceptPatience until done is called, but
// not the first time: the whole daemon may have been stopped.
func (d *door) watchAccept() (done func()) {
	var mu sync.Mutex
	var timer *time.Timer
	strikes, over := 0, false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(acceptPatience, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if strikes++; strikes > 1 {
			shut(d.handle)
		}
		timer.Reset(acceptPatience)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

func (d *door) opError(err error) error {
	return &net.OpError{Op: "accept", Net: "tcp", Addr: d.Addr(), Err: err}
}
