// Package peek reads a connection whose first bytes are looked at before they are
// consumed.
//
//	st := &peek.Stream{Conn: c, Pool: &heads}
//	for st.More(limit) == nil && !known(st.Held()) {
//	}
//	st.Skip(n)              // these n held bytes are done with
//	_, err := io.Copy(w, st) // the rest of the held bytes, then c's
//
//	hello, state, err := peek.Hello(st, limit) // a ClientHello, which stays held
//
// A Stream holds a buffer only while bytes are in it. More than [BufferBytes] at
// a time count against the Budget, so that many clients with long first bytes
// together cannot fill the memory.
package peek

import (
	"errors"
	"io"
	"net"
	"time"

	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/pool"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/wire"
)

// BufferBytes is the size of the buffers that heads and hellos are read into;
// almost all fit.
const BufferBytes = 4 << 10

// LingerTimeout is how long a client may take an answer before Linger closes the
// connection all the same.
const LingerTimeout = time.Second

// lingerBytes is how much of what the client still sends Linger reads.
const lingerBytes = 64 << 10

// ErrTooLong says that what is held has reached the limit.
var ErrTooLong = errors.New("longer than the limit")

// Owner is who may end a connection from outside while a Stream reads it.
type Owner interface {
	// LimitRead sets the read deadline of the connection to t, or to an earlier
	// time of the owner's.
	LimitRead(t time.Time) error
	// BeforeReset is called before a reset is sent.
	BeforeReset()
}

// Stream is the client's side of a flow. Set the exported fields before its first
// use. One goroutine reads at a time; deadlines, Reset and Close may come from
// others.
type Stream struct {
	net.Conn
	Owner  Owner // of Conn; nil: Conn is a layer above a connection that has one
	Pool   *pool.Buffers
	Budget *admission.Budget // of what is held over BufferBytes; nil: none

	buf  *[]byte // nil while nothing is held
	r, w int     // (*buf)[r:w] is held
	high int     // the most of buf that was ever used
}

// Held reports the bytes read from the client and not consumed. They are valid
// until the next call of More, Skip, Read, Release or Linger.
func (st *Stream) Held() []byte {
	if st.buf == nil {
		return nil
	}
	return (*st.buf)[st.r:st.w]
}

// More reads some more bytes behind the held ones, which never grow over limit:
// then it reports ErrTooLong, or admission.ErrHeldTooMuch if the Budget is used up.
func (st *Stream) More(limit int) error {
	if st.buf == nil {
		st.buf, st.r, st.w, st.high = st.Pool.Get(BufferBytes), 0, 0, 0
	}
	if st.w-st.r >= limit {
		return ErrTooLong
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
func (st *Stream) grow(limit int) error {
	held := st.Held()
	if st.r > 0 {
		st.w, st.r = copy(*st.buf, held), 0
		return nil
	}
	size := min(4*len(*st.buf), max(limit, len(*st.buf)+1))
	if st.Budget != nil && !st.Budget.Take(size-len(*st.buf)) {
		return admission.ErrHeldTooMuch
	}
	larger := make([]byte, size)
	copy(larger, held)
	if len(*st.buf) == BufferBytes {
		st.Pool.Put(st.buf, st.high)
	}
	st.buf = &larger
	return nil
}

// Skip consumes n held bytes.
func (st *Stream) Skip(n int) {
	if st.r += n; st.r == st.w {
		st.Release()
	}
}

// Release gives the buffer back; what is held is lost.
func (st *Stream) Release() {
	if st.buf == nil {
		return
	}
	switch {
	case len(*st.buf) == BufferBytes:
		st.Pool.Put(st.buf, st.high)
	case st.Budget != nil:
		st.Budget.GiveBack(len(*st.buf) - BufferBytes)
	}
	st.buf, st.r, st.w = nil, 0, 0
}

// Read reads the held bytes first.
func (st *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if st.buf != nil && st.r < st.w {
		n := copy(p, st.Held())
		st.Skip(n)
		return n, nil
	}
	return st.Conn.Read(p)
}

// SetReadDeadline sets the deadline, which the Owner may shorten.
func (st *Stream) SetReadDeadline(t time.Time) error {
	if st.Owner != nil {
		return st.Owner.LimitRead(t)
	}
	return st.Conn.SetReadDeadline(t)
}

// SetDeadline sets both deadlines.
func (st *Stream) SetDeadline(t time.Time) error {
	if err := st.SetReadDeadline(t); err != nil {
		return err
	}
	return st.SetWriteDeadline(t)
}

// CloseWrite ends the sending half.
func (st *Stream) CloseWrite() error { return socket.HalfClose(st.Conn) }

// Reset closes the stream with a RST.
func (st *Stream) Reset() {
	if st.Owner != nil {
		st.Owner.BeforeReset()
	}
	socket.Reset(st.Conn)
}

// Linger closes the stream so that what was written last arrives: data of the
// client's that is still unread would turn the close into a reset that overtakes
// it.
func (st *Stream) Linger() {
	st.Release()
	if err := socket.HalfClose(st.Conn); err == nil {
		_ = st.Conn.SetReadDeadline(time.Now().Add(LingerTimeout))
		_, _ = io.CopyN(io.Discard, readOnly{st.Conn}, lingerBytes)
	}
	_ = st.Close()
}

// Hello reads until the client's first bytes are a ClientHello, or cannot
// become one. They stay held. An error comes
// with wire.More: they did not come.
func Hello(st *Stream, limit int) (wire.Hello, wire.State, error) {
	var scan wire.HelloScanner
	for {
		if len(st.Held()) > 0 {
			if h, state := scan.Scan(st.Held()); state != wire.More {
				return h, state, nil
			}
		}
		if err := st.More(limit); err != nil {
			if err == ErrTooLong {
				return wire.Hello{}, wire.Bad, nil
			}
			return wire.Hello{}, wire.More, err
		}
	}
}

// Begins reads until it is known whether the first bytes are those of word. They
// stay held. False: they are others, or did not come.
func Begins(st *Stream, word string) bool {
	for {
		held := st.Held()
		if n := min(len(held), len(word)); n == len(word) || string(held[:n]) != word[:n] {
			return string(held[:n]) == word
		}
		if st.More(len(word)) != nil {
			return false
		}
	}
}

// readOnly hides what else a connection can do from io.Copy.
type readOnly struct{ c net.Conn }

func (r readOnly) Read(p []byte) (int, error) { return r.c.Read(p) }
