package relay

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Implementation constants of the splicing relay.
const (
	pipesMax  = 128       // pipes of one engine, two descriptors each
	pipeBytes = 256 << 10 // asked for; an unprivileged user may get the kernel's 64 KiB
)

// pipe is a kernel pipe that splice(2) moves pages through.
type pipe struct{ r, w int }

func (p *pipe) close() {
	_ = unix.Close(p.r) // nothing is lost with a pipe
	_ = unix.Close(p.w)
}

// pipes is a bounded pool of empty pipes.
type pipes struct {
	mu   sync.Mutex
	free []*pipe
	made int
}

// get reports a pipe, or nil when all are in use or none can be made.
func (p *pipes) get() *pipe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		got := p.free[n-1]
		p.free = p.free[:n-1]
		return got
	}
	if p.made >= pipesMax {
		return nil
	}
	var fds [2]int
	if unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		return nil
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeBytes) // smaller works too
	p.made++
	return &pipe{fds[0], fds[1]}
}

// put takes an empty pipe back.
func (p *pipes) put(got *pipe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, got)
}

// discard closes a pipe that may hold bytes of a flow that failed.
func (p *pipes) discard(got *pipe) {
	got.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made--
}

// drain closes the pipes that nobody uses.
func (p *pipes) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.free {
		f.close()
	}
	p.made -= len(p.free)
	p.free = nil
}

// direction is one way of a relay between two kernel sockets. A callback of
// RawConn.Read that finds nothing to read gives its buffer or pipe back before
// the runtime waits.
type direction struct {
	e        *Goroutines
	way      Way
	dst      net.Conn
	srcRaw   syscall.RawConn
	dstRaw   syscall.RawConn
	bulk     int64 // carried so far
	noSplice bool

	// What the callbacks hand back.
	buf  *[]byte
	pipe *pipe
	n    int
	err  error

	// The callbacks, bound once so that a read allocates nothing.
	read, fill, empty func(fd uintptr) bool
}

// between prepares to carry w between kernel sockets; nil if one of them is
// something else.
func (g *Goroutines) between(w Way) *direction {
	dst, src := w.Dst(), w.Src()
	to, okTo := dst.(syscall.Conn)
	from, okFrom := src.(syscall.Conn)
	if !okTo || !okFrom {
		return nil
	}
	srcRaw, err := from.SyscallConn()
	if err != nil {
		return nil // the read will say why
	}
	dstRaw, err := to.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direction{e: g, way: w, dst: dst, srcRaw: srcRaw, dstRaw: dstRaw}
	d.read, d.fill, d.empty = d.readSome, d.fillPipe, d.emptyPipe
	return d
}

func (d *direction) carry() (err error) {
	defer d.release()
	for {
		if d.bulk >= bulkBytes && !d.noSplice {
			err = d.splice()
		} else {
			err = d.copy()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// release gives back what a failure left behind.
func (d *direction) release() {
	if d.buf != nil {
		d.e.bufs.Put(d.buf, d.n)
	}
	if d.pipe != nil {
		d.e.pipes.discard(d.pipe)
	}
}

// copy moves one piece through a pooled buffer.
func (d *direction) copy() error {
	if err := d.srcRaw.Read(d.read); err != nil {
		return err
	}
	if d.err != nil {
		return os.NewSyscallError("read", d.err)
	}
	if d.n == 0 {
		return io.EOF
	}
	d.bulk += int64(d.n)
	if !d.way.Count(int64(d.n)) {
		return ErrStopped
	}
	_, err := d.dst.Write((*d.buf)[:d.n])
	d.e.bufs.Put(d.buf, d.n)
	d.buf = nil
	return err
}

func (d *direction) readSome(fd uintptr) bool {
	if d.buf == nil {
		d.buf = d.e.bufs.Get(pieceBytes)
	}
	n, err := retry(func() (int, error) { return unix.Read(int(fd), *d.buf) })
	d.n, d.err = max(n, 0), err // -1 with an error
	if d.err == unix.EAGAIN {
		d.e.bufs.Put(d.buf, 0)
		d.buf, d.n, d.err = nil, 0, nil
		return false
	}
	return true
}

// splice moves one pipe's fill.
func (d *direction) splice() error {
	if err := d.srcRaw.Read(d.fill); err != nil {
		return err
	}
	switch {
	case d.err != nil: // which the kernel tells once
		return os.NewSyscallError("splice", d.err)
	case d.n < 0:
		return nil // on with copying
	case d.n == 0:
		d.e.pipes.put(d.pipe)
		d.pipe = nil
		return io.EOF
	}
	if !d.way.Count(int64(d.n)) {
		return ErrStopped
	}
	if err := d.dstRaw.Write(d.empty); err != nil {
		return err
	}
	if d.err != nil {
		return os.NewSyscallError("splice", d.err)
	}
	return nil
}

// fillPipe moves what src has into an empty pipe.
func (d *direction) fillPipe(fd uintptr) bool {
	d.err = nil
	if d.pipe == nil {
		if d.pipe = d.e.pipes.get(); d.pipe == nil {
			d.bulk, d.n = 0, -1 // all pipes are in use: copy for a while
			return true
		}
	}
	d.n, d.err = d.move(int(fd), d.pipe.w, pipeBytes)
	switch d.err {
	case unix.EAGAIN:
		d.e.pipes.put(d.pipe)
		d.pipe, d.n, d.err = nil, 0, nil
		return false
	case unix.EINVAL, unix.ENOSYS: // a socket that cannot be spliced
		d.e.pipes.put(d.pipe)
		d.pipe, d.n, d.err, d.noSplice = nil, -1, nil, true
	}
	return true
}

// emptyPipe moves the pipe's d.n bytes to dst.
func (d *direction) emptyPipe(fd uintptr) bool {
	for d.n > 0 {
		var n int
		n, d.err = d.move(d.pipe.r, int(fd), d.n)
		if d.err == unix.EAGAIN {
			d.err = nil
			return false
		}
		if d.err != nil {
			return true
		}
		if n == 0 {
			d.err = io.ErrUnexpectedEOF
			return true
		}
		d.n -= n
	}
	return true
}

func (d *direction) move(from, to, n int) (int, error) {
	return retry(func() (int, error) {
		k, err := unix.Splice(from, nil, to, nil, n, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		return int(k), err
	})
}

// retry calls f until no signal interrupts it.
func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}
