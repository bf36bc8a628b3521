package inside

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// attempt is a connect that pid 1 makes for a caller.
type attempt struct {
	id      uint64
	fd      int // a copy of the caller's socket
	file    int // what address names by its number; -1: nothing
	address []byte
	flags   int       // of the caller's socket, O_NONBLOCK among them
	until   time.Time // when the caller's own timeout ends; zero: never
}

func (a attempt) close() {
	unix.Close(a.fd)
	if a.file >= 0 {
		unix.Close(a.file)
	}
}

// waiting are the attempts that take a while. Only a server inside that accepts
// nobody makes one wait: what leaves the sandbox is accepted at the door at once.
type waiting struct {
	mu      sync.Mutex
	list    []attempt
	running bool // somebody looks after the list
}

const (
	maxWaiting = 128                   // beyond: EAGAIN, as when a kernel has no more room
	firstLook  = 10                    // milliseconds that a handler waits itself
	laterLooks = 20                    // milliseconds between two looks at a full backlog, for which there is no event
	underWay   = unix.Errno(1<<31 - 1) // no errno: the connection is being made
)

// dial connects, answers and closes a.
//
// The copy shares everything with the caller's socket, also whether it blocks. A
// blocking one is not blocking for the moment of the call, so that no handler
// hangs; what is to be waited for is waited for afterwards.
func (c *connector) dial(a attempt) {
	flags, err := unix.FcntlInt(uintptr(a.fd), unix.F_GETFL, 0)
	a.flags = flags
	kind, kerr := unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	blocks := err == nil && kerr == nil && flags&unix.O_NONBLOCK == 0 && (kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET)
	if !blocks { // datagrams never wait; what is no socket fails
		c.answer(a.id, rawConnect(a.fd, a.address))
		a.close()
		return
	}
	e := a.step()
	if e == underWay {
		poll := []unix.PollFd{{Fd: int32(a.fd), Events: unix.POLLOUT}} // #nosec: a descriptor
		unix.Poll(poll, firstLook)                                     //nolint:errcheck // the next step shows
		e = a.step()
	}
	if e == underWay {
		if tv, err := unix.GetsockoptTimeval(a.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err == nil && (tv.Sec != 0 || tv.Usec != 0) {
			a.until = time.Now().Add(time.Duration(tv.Nano()))
		}
		if c.waiting.add(c, a) {
			return
		}
		e = unix.EAGAIN
	}
	c.answer(a.id, e)
	a.close()
}

// step makes the call once, and reports underWay if that was not enough.
func (a attempt) step() unix.Errno {
	if _, err := unix.FcntlInt(uintptr(a.fd), unix.F_SETFL, a.flags|unix.O_NONBLOCK); err != nil {
		return unix.EBADF
	}
	e := rawConnect(a.fd, a.address)
	unix.FcntlInt(uintptr(a.fd), unix.F_SETFL, a.flags) //nolint:errcheck // it worked the other way
	if e == unix.EINPROGRESS || e == unix.EALREADY || e == unix.EAGAIN && a.unix() {
		return underWay
	}
	return e
}

// unix reports whether the address is one of a unix socket.
func (a attempt) unix() bool { return len(a.address) > 1 && a.address[0] == unix.AF_UNIX }

// add puts a on the list, if there is room.
func (w *waiting) add(c *connector, a attempt) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) >= maxWaiting {
		return false
	}
	w.list = append(w.list, a)
	if !w.running {
		w.running = true
		go w.serve(c)
	}
	return true
}

// serve finishes what is on the list, until there is nothing.
func (w *waiting) serve(c *connector) {
	for {
		w.mu.Lock()
		list := w.list
		w.list = nil
		if len(list) == 0 {
			w.running = false
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		w.poll(list)
		left := list[:0]
		for _, a := range list {
			if !w.look(c, a) {
				left = append(left, a)
			}
		}
		w.mu.Lock()
		w.list = append(left, w.list...)
		w.mu.Unlock()
	}
}

// poll waits until one of list has an answer, or it is time to look.
func (w *waiting) poll(list []attempt) {
	fds := make([]unix.PollFd, 0, len(list))
	for _, a := range list {
		if !a.unix() { // an unconnected unix socket is always ready
			fds = append(fds, unix.PollFd{Fd: int32(a.fd), Events: unix.POLLOUT}) // #nosec: a descriptor
		}
	}
	unix.Poll(fds, laterLooks) //nolint:errcheck // the look shows
}

// look makes another step for a, and reports whether that was the last.
func (w *waiting) look(c *connector, a attempt) bool {
	e := underWay
	if c.calls.Valid(a.id) {
		e = a.step()
		if e == underWay && !a.until.IsZero() && time.Now().After(a.until) {
			if e = unix.EINPROGRESS; a.unix() {
				e = unix.EAGAIN
			}
		}
		if e == underWay {
			return false
		}
		c.answer(a.id, e)
	}
	a.close()
	return true
}
