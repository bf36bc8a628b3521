package relay

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// writeAgain is how long, in milliseconds, a full pseudo-terminal is waited for
// before another try.
const writeAgain = 1000

// show carries output until nobody can write any on the other side, or the relay
// stops.
func (r *Relay) show() {
	defer close(r.output.done)
	defer r.restoreOnPanic()
	for {
		if _, stopped := r.wait(r.master, unix.POLLIN, -1); stopped {
			return
		}
		select {
		case r.output.turn <- struct{}{}:
		case <-r.stop.over:
			return
		}
		_, err := r.pump()
		<-r.output.turn
		if err != nil {
			return
		}
	}
}

// pump shows what there is now, at most one chunk, and reports whether there was
// anything. The caller has output.
func (r *Relay) pump() (some bool, err error) {
	n := 0
	for n < len(r.buf) && err == nil {
		var m int
		m, err = unix.Read(r.master, r.buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			err = nil
		case err == nil && m == 0:
			err = io.EOF
		case err == nil:
			n += m
		}
	}
	if errors.Is(err, unix.EAGAIN) {
		err = nil
	}
	if n > 0 {
		r.modes.Note(r.buf[:n])
		r.write(r.buf[:n], -1)
		r.progress.Add(1)
	}
	return n > 0, err
}

// write shows b. A terminal that hung up shows nothing any more: the program learns
// of it by a signal, as on a terminal of its own. Each time that the terminal takes
// nothing it is waited for, limit milliseconds at most; -1: without a limit. The
// caller has output, or the relay has ended.
func (r *Relay) write(b []byte, limit int) {
	for len(b) > 0 {
		n, err := unix.Write(r.t.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if ready, stopped := r.wait(r.t.fd, unix.POLLOUT, limit); stopped || !ready {
				return
			}
		case err != nil:
			return
		default:
			b = b[n:]
		}
	}
}

// read carries keys while they are granted.
func (r *Relay) read() {
	defer close(r.keys.done)
	defer r.restoreOnPanic()
	if !r.t.keys {
		return
	}
	buf := make([]byte, keysChunk)
	for {
		if _, stopped := r.wait(r.t.fd, unix.POLLIN, -1); stopped {
			return
		}
		n, more := r.take(buf)
		if !more || !r.pass(buf[:n]) {
			return
		}
	}
}

// take reads keys, once it may. The caller looked whether there are any, but may
// have waited meanwhile, and others may have read them.
func (r *Relay) take(buf []byte) (n int, more bool) {
	select {
	case r.keys.turn <- struct{}{}:
	case <-r.stop.over:
		return 0, false
	}
	defer func() { <-r.keys.turn }()
	switch ready, stopped := r.wait(r.t.fd, unix.POLLIN, 0); {
	case stopped:
		return 0, false
	case !ready:
		return 0, true
	}
	n, err := unix.Read(r.t.fd, buf)
	switch {
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		return 0, true
	case err != nil || n <= 0:
		return 0, false // hung up
	}
	return n, true
}

// pass gives keys to the program, which may take its time.
func (r *Relay) pass(b []byte) (more bool) {
	for len(b) > 0 {
		n, err := unix.Write(r.master, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if _, stopped := r.wait(r.master, unix.POLLOUT, writeAgain); stopped {
				return false
			}
		case err != nil:
			return false
		default:
			b = b[n:]
		}
	}
	return true
}

// wait waits until fd is ready, hung up, or the relay stops; at most so many
// milliseconds, -1 without a limit.
func (r *Relay) wait(fd int, events int16, limit int) (ready, stopped bool) {
	for {
		fds := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(r.stop.fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds[:], limit)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && fds[0].Revents != 0, err != nil || fds[1].Revents != 0
	}
}
