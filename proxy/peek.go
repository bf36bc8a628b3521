package proxy

import (
	"errors"
	"io"
	"net"
	"time"

	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/pool"
	"egressd/proxy/internal/socket"
)

// headBufferBytes is the size of the buffers that heads and hellos are read
// into; almost all fit.
const headBufferBytes = 4 << 10

var errTooLong = errors.New("longer than the limit")

// stream is the client's side of a flow: a connection whose first bytes can be
// looked at before they are consumed. One goroutine reads at a time.
type stream struct {
	net.Conn
	c      *conn // the client connection if Conn is its socket; nil: Conn is a layer above it
	pool   *pool.Buffers
	budget *admission.Budget // of what is held over headBufferBytes; nil: none
	buf    *[]byte           // nil while nothing is held
	r, w   int               // (*buf)[r:w] is held
	high   int               // the most of buf that was ever used
}

// held reports the bytes read from the client and not consumed.
func (st *stream) held() []byte {
	if st.buf == nil {
		return nil
	}
	return (*st.buf)[st.r:st.w]
}

// more reads some more bytes behind the held ones, which never grow over limit.
func (st *stream) more(limit int) error {
	if st.buf == nil {
		st.buf, st.r, st.w, st.high = st.pool.Get(headBufferBytes), 0, 0, 0
	}
	if st.w-st.r >= limit {
		return errTooLong
	}
	if st.w == len(*st.buf) {
		if err := st.grow(limit); err != nil {
			return err
		}
	}
	end := min(len(*st.buf), st.r+limit)
	for range 100 { // as bufio: a reader that gives nothing and no error is broken
		n, err := st.Conn.Read((*st.buf)[st.w:end])
		st.w += n
		st.high = max(st.high, st.w)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// grow makes room: by moving the held bytes to the front, else by a larger
// buffer.
func (st *stream) grow(limit int) error {
	held := st.held()
	if st.r > 0 {
		st.w, st.r = copy(*st.buf, held), 0
		return nil
	}
	size := min(4*len(*st.buf), max(limit, len(*st.buf)+1))
	if st.budget != nil && !st.budget.Take(size-len(*st.buf)) {
		return admission.ErrHeldTooMuch
	}
	larger := make([]byte, size)
	copy(larger, held)
	if len(*st.buf) == headBufferBytes {
		st.pool.Put(st.buf, st.high)
	}
	st.buf = &larger
	return nil
}

// skip consumes n held bytes.
func (st *stream) skip(n int) {
	if st.r += n; st.r == st.w {
		st.release()
	}
}

// release gives the buffer back; what is held is lost.
func (st *stream) release() {
	if st.buf == nil {
		return
	}
	switch {
	case len(*st.buf) == headBufferBytes:
		st.pool.Put(st.buf, st.high)
	case st.budget != nil:
		st.budget.GiveBack(len(*st.buf) - headBufferBytes)
	}
	st.buf, st.r, st.w = nil, 0, 0
}

// Read reads the held bytes first.
func (st *stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if st.buf != nil && st.r < st.w {
		n := copy(p, st.held())
		st.skip(n)
		return n, nil
	}
	return st.Conn.Read(p)
}

// SetReadDeadline sets the deadline, unless the client must make room.
func (st *stream) SetReadDeadline(t time.Time) error {
	if st.c != nil {
		return st.c.setReadDeadline(t)
	}
	return st.Conn.SetReadDeadline(t)
}

// SetDeadline sets both deadlines.
func (st *stream) SetDeadline(t time.Time) error {
	if err := st.SetReadDeadline(t); err != nil {
		return err
	}
	return st.SetWriteDeadline(t)
}

// CloseWrite ends the sending half.
func (st *stream) CloseWrite() error { return socket.HalfClose(st.Conn) }

// reset closes the stream with a RST.
func (st *stream) reset() {
	if st.c != nil && st.c.onReset != nil {
		st.c.onReset()
	}
	socket.Reset(st.Conn)
}

// linger closes the stream so that what was written last arrives: data of the
// client's that is still unread would turn the close into a reset that overtakes
// it.
func (st *stream) linger() {
	st.release()
	if err := socket.HalfClose(st.Conn); err == nil {
		_ = st.Conn.SetReadDeadline(time.Now().Add(lingerTimeout))
		_, _ = io.CopyN(io.Discard, readOnly{st.Conn}, lingerBytes)
	}
	_ = st.Close()
}

// readOnly hides what else a connection can do from io.Copy.
type readOnly struct{ c net.Conn }

func (r readOnly) Read(p []byte) (int, error) { return r.c.Read(p) }
