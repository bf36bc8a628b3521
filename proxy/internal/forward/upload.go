package forward

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// Implementation constants.
const (
	chunkLineBytes = len("8000\r\n") // for copyBufferBytes and less
	lastWriteTime  = 50 * time.Millisecond
)

var errLongUpload = errors.New("the request body is longer than its Content-Length")

// upload sends the content of a request to a plain-HTTP origin while the
// response is waited for.
type upload struct {
	x    *exchange
	out  *http.Request
	conn *originConn

	invited chan bool     // whether the origin wants the content; nil: it was not asked
	over    chan struct{} // closed at the end; whole is known then
	whole   bool          // all of it has been sent

	read   atomic.Bool           // all of it has been read
	failed atomic.Pointer[error] // of the client's side; the connection is closed then
}

// begin starts an upload. It ends when the content does, or soon after conn and
// the client's request are closed.
func (x *exchange) begin(out *http.Request, conn *originConn) *upload {
	u := &upload{x: x, out: out, conn: conn, over: make(chan struct{})}
	if out.Header.Get("Expect") != "" {
		u.invited = make(chan bool, 1)
	}
	go u.run()
	return u
}

func (u *upload) run() {
	defer close(u.over)
	defer u.x.Gate.Survive(func() { u.fail(ErrPanicked) })
	if !u.wanted() {
		return
	}
	if !u.x.continues() {
		return // the client will not send it
	}
	held := u.x.p.Buffers.Get(copyBufferBytes)
	defer u.x.p.Buffers.Put(held, copyBufferBytes)
	if u.out.ContentLength > 0 {
		u.whole = u.sendLength(*held)
	} else {
		u.whole = u.sendChunks(*held)
	}
	u.x.awaitHead(u.conn)
}

// wanted waits for the origin's word, for a while.
func (u *upload) wanted() bool {
	if u.invited == nil {
		return true
	}
	t := time.NewTimer(u.x.p.patience)
	defer t.Stop()
	select {
	case yes := <-u.invited:
		return yes
	case <-t.C:
		return true
	}
}

// invite says whether the origin wants the content. Once is enough.
func (u *upload) invite(yes bool) {
	if u != nil && u.invited != nil {
		select {
		case u.invited <- yes:
		default:
		}
	}
}

// fail breaks the exchange off: the origin must not take what it has got for all.
func (u *upload) fail(err error) {
	u.failed.CompareAndSwap(nil, &err)
	_ = u.conn.Close()
}

// sendLength sends content of a stated length; false: not all of it.
func (u *upload) sendLength(buf []byte) bool {
	left := u.out.ContentLength
	for {
		n, err := u.out.Body.Read(buf)
		if left -= int64(n); left < 0 {
			u.fail(errLongUpload)
			return false
		}
		ended := err == io.EOF //nolint:errorlint // io.Reader: EOF comes bare
		u.read.Store(ended)
		if n > 0 {
			if _, err := u.conn.Write(buf[:n]); err != nil {
				return false // the origin may have answered already
			}
		}
		switch {
		case ended && left > 0:
			u.fail(ErrShortUpload)
			return false
		case ended:
			return true
		case err != nil:
			u.fail(err)
			return false
		}
	}
}

// sendChunks sends content of unknown length, and its trailers; false: not all of it.
func (u *upload) sendChunks(buf []byte) bool {
	space := buf[chunkLineBytes : len(buf)-len("\r\n")]
	for {
		n, err := u.out.Body.Read(space)
		ended := err == io.EOF //nolint:errorlint // io.Reader: EOF comes bare
		u.read.Store(ended)
		if n > 0 {
			var line [chunkLineBytes]byte
			size := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
			start := chunkLineBytes - len(size)
			copy(buf[start:], size)
			end := chunkLineBytes + n + copy(buf[chunkLineBytes+n:], "\r\n")
			if _, err := u.conn.Write(buf[start:end]); err != nil {
				return false // the origin may have answered already
			}
		}
		switch {
		case ended:
			return u.sendTrailers(buf)
		case err != nil:
			u.fail(err)
			return false
		}
	}
}

func (u *upload) sendTrailers(buf []byte) bool {
	b, err := appendFields(append(buf[:0], "0\r\n"...), u.out.Trailer)
	if err != nil {
		u.fail(err)
		return false
	}
	_, err = u.conn.Write(append(b, "\r\n"...))
	return err == nil
}

// done reports whether all of the content has been sent. It waits for a write
// under way, as the origin may answer before it is reported.
func (u *upload) done() bool {
	if u == nil {
		return true
	}
	if u.read.Load() {
		t := time.NewTimer(lastWriteTime)
		defer t.Stop()
		select {
		case <-u.over:
		case <-t.C:
		}
	}
	select {
	case <-u.over:
		return u.whole
	default:
		return false
	}
}
