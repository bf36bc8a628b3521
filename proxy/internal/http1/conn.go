// Package http1 frames HTTP/1 strictly, a client's requests and an origin's
// responses, and passes on only what it could frame.
//
// [Conn] reads the requests of a client's connection, by the strictest reading of
// RFC 9112; [Responses] reads what an origin answers. Nothing else in the gate
// reads HTTP/1 from them, so no two parsers can disagree.
//
//	c := http1.NewConn(conn)
//	for {
//		r, err := c.Next(idle)
//		if err != nil {
//			break // the client has gone, or said nothing in time
//		}
//		if r.Err != nil {
//			break // answer r.Err.Status: nothing more is read
//		}
//		n, err := c.ReadBody(p) // until io.EOF, then Next again
//	}
//	c.Linger()
//
// Threat: a client sends a stream that the gate and an origin (or two parsers
// inside the gate) split into requests at different places, and so hides a
// request from the judge -> a stream that is not framed in the one way every
// parser agrees on is refused before an origin sees a byte of that
// head -> a body that turns out malformed half way has been passed on up to
// there; the origin sees it end without its last chunk.
package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Implementation constants.
const (
	defaultHeadBytes = 32 << 10
	firstBuffer      = 4 << 10
	lingerBytes      = 256 << 10
	lingerTime       = time.Second
)

// Conn is one client's connection. One goroutine at a time reads requests and
// their content; one at a time writes. Drain, Abort and Close may come from
// others. Set the fields before the first Next.
type Conn struct {
	net.Conn

	// HeadBytes bounds a request head. Zero means 32 KiB.
	HeadBytes int
	// HeadTimeout bounds the time from the first byte of a head to its last.
	// Zero means 10 seconds.
	HeadTimeout time.Duration
	// IdleTimeout bounds each wait for more of a body, and each write. Zero
	// means no bound.
	IdleTimeout time.Duration

	// Grow is called with the number of bytes by which the buffer for heads is about
	// to grow over its first 4 KiB, negative when it shrinks again. False refuses the head
	// with 503. Nil: HeadBytes is the only bound. Release gives back the rest.
	Grow func(by int) bool

	// EndGrace is how long a client that has ended its sending half is taken to
	// wait for its response. NewConn sets DefaultEndGrace.
	EndGrace time.Duration

	readMu  sync.Mutex // held by who reads, also while the client's end is looked for
	reading            // guarded by readMu
	told    told
	watcher watcher
	clocks  clocks
}

// reading is how far a Conn has read its client's stream.
type reading struct {
	base    []byte               // the array behind buf, used again when buf is empty
	buf     []byte               // read and not yet taken
	body    body                 // of the request under way
	trailer textproto.MIMEHeader // of the request under way; nil: there can be none
	started bool                 // a head has been read
	refused bool                 // nothing more is read
	scan    int                  // where to go on looking for the end of the head
	blank   bool                 // the empty line before this request has been skipped
	err     error                // of the last read from Conn, sticky
	grown   int                  // what Grow was called with for base
}

// told is what others than the reader ask about the request under way: its answer
// must not wait for what the client sends next.
type told struct {
	unread atomic.Bool           // content is still to be read
	bad    atomic.Pointer[Error] // why the content was refused
}

// NewConn reads requests from c.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c, EndGrace: DefaultEndGrace} }

// Next reads the next request head, for whose first byte it waits at most for
// wait. The content of the request before must have been read. A head that is
// refused comes with its Err, and is the last. An error: there is no request.
func (c *Conn) Next(wait time.Duration) (Request, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if c.refused || c.body.phase != done {
		return Request{}, io.EOF
	}
	c.trailer = nil
	var end time.Time // when the head must be complete; zero until its first byte is there
	for {
		if n, bad := c.headEnd(); bad != nil {
			return c.refuse(bad), nil
		} else if n > 0 {
			return c.takeHead(n), nil
		}
		var err error
		if len(c.buf) == 0 {
			err = c.awaitFirst(wait)
		} else {
			if end.IsZero() {
				end = time.Now().Add(c.headTimeout())
			}
			c.clocks.until(c.Conn, end)
			err = c.fill()
		}
		switch {
		case err == nil:
		case err == errNoRoom: //nolint:errorlint // our own
			return c.refuse(&Error{Status: 503, Detail: "unfinished requests hold all the memory that is set aside for them"}), nil
		case len(c.buf) > 0 && errors.Is(err, os.ErrDeadlineExceeded):
			return c.refuse(&Error{Status: 408, Detail: "the request head did not arrive in time"}), nil
		default:
			return Request{}, err
		}
	}
}

// headEnd reports the length of the head at the front of buf; 0: more bytes are
// needed.
func (c *Conn) headEnd() (int, *Error) {
	if c.scan == 0 && bytes.HasPrefix(c.buf, []byte("\r\n")) {
		// RFC 9112 section 2.2: one empty line before a request is ignored.
		if c.blank {
			return 0, malformed("empty lines before the request line")
		}
		c.buf, c.blank = c.buf[2:], true
	}
	if i := bytes.Index(c.buf[c.scan:], []byte("\n\r\n")); i >= 0 && c.scan+i+3 <= c.headBytes() {
		return c.scan + i + 3, nil
	}
	if bad := hopeless(c.buf, c.scan, c.headBytes()); bad != nil {
		return 0, bad
	}
	c.scan = max(0, len(c.buf)-2)
	return 0, nil
}

// awaitFirst waits for the first byte of a head.
func (c *Conn) awaitFirst(wait time.Duration) error {
	if !c.clocks.idle(c.Conn, wait, !c.started) {
		return io.EOF
	}
	defer c.clocks.busy()
	return c.fill()
}

// takeHead takes the n bytes of a head from the front of buf.
func (c *Conn) takeHead(n int) Request {
	r := ParseHead(c.buf[:n])
	c.scan, c.blank, c.started = 0, false, true
	if r.Err != nil {
		c.refused = true
		return r
	}
	c.body = r.body
	c.tell()
	if c.body.phase == chunkSize {
		c.trailer = r.Trailer
	}
	if c.buf = c.buf[n:]; len(c.buf) == 0 {
		c.shrink()
	}
	return r
}

// refuse is the request of which only so much could be read.
func (c *Conn) refuse(bad *Error) Request {
	c.refused = true
	r := Request{Err: bad, HeadBytes: len(c.buf)}
	method, _, _ := bytes.Cut(c.buf[:min(len(c.buf), maxMethod)], []byte(" "))
	if isToken(method) {
		r.Method = string(method)
	}
	return r
}

// ReadBody reads content of the request under way, without its framing. io.EOF:
// all of it has been read, and the trailers are in the request's Trailer. An
// *Error: the content is not framed as it must be; nothing more is read.
func (c *Conn) ReadBody(p []byte) (int, error) {
	if bad := c.BodyErr(); bad != nil {
		return 0, bad
	}
	if c.BodyDone() { // the client's end may be looked for
		return 0, io.EOF
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	for {
		switch {
		case c.BodyErr() != nil:
			return 0, c.BodyErr()
		case c.body.phase == done:
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		case c.body.data() > 0:
			return c.readData(p)
		case c.bodyLine():
			continue
		}
		c.clocks.within(c.Conn, c.IdleTimeout)
		if err := c.fill(); err != nil {
			return 0, cutShort(err)
		}
	}
}

// readData reads content: from buf, else straight into p.
func (c *Conn) readData(p []byte) (n int, err error) {
	if most := c.body.data(); int64(len(p)) > most {
		p = p[:most]
	}
	if len(c.buf) > 0 {
		n = copy(p, c.buf)
		c.buf = c.buf[n:]
	} else {
		c.clocks.within(c.Conn, c.IdleTimeout)
		n, err = c.Conn.Read(p)
	}
	if n > 0 {
		c.body.took(n)
		c.tell()
		return n, nil
	}
	return 0, cutShort(err)
}

// bodyLine takes one line of chunk framing from buf; false: more bytes are
// needed. What it refuses is in bad.
func (c *Conn) bodyLine() bool {
	inTrailers := c.body.phase == trailers
	n, bad := c.body.line(c.buf)
	if bad != nil {
		c.refused = true
		c.told.bad.Store(bad)
		return true
	}
	if n > chunkCRLFBytes && inTrailers {
		name, value, _ := splitField(c.buf[:n-chunkCRLFBytes]) // line has looked at it
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		c.trailer[key] = append(c.trailer[key], string(value))
	}
	c.buf = c.buf[n:]
	c.tell()
	return n > 0
}

// tell lets BodyDone know how far the content has been read.
func (c *Conn) tell() { c.told.unread.Store(c.body.phase != done) }

// cutShort is err where content was to come.
func cutShort(err error) error {
	if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		return io.ErrUnexpectedEOF
	}
	return err
}

// BodyErr reports why the content of the request under way was refused half way;
// nil when it was not. It waits for nobody and may be called from any goroutine.
func (c *Conn) BodyErr() *Error { return c.told.bad.Load() }

// BodyDone reports whether all content of the request under way has been read. It
// waits for nobody and may be called from any goroutine.
func (c *Conn) BodyDone() bool { return !c.told.unread.Load() }

// Read reads what follows the request under way as it is: the connection speaks
// another protocol from here on.
func (c *Conn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if len(c.buf) > 0 {
		n := copy(p, c.buf)
		if c.buf = c.buf[n:]; len(c.buf) == 0 {
			c.shrink()
		}
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// Write writes to the client, within IdleTimeout.
func (c *Conn) Write(p []byte) (int, error) {
	c.clocks.write(c.Conn, c.IdleTimeout)
	return c.Conn.Write(p)
}

func (c *Conn) headBytes() int {
	if c.HeadBytes > 0 {
		return c.HeadBytes
	}
	return defaultHeadBytes
}

func (c *Conn) headTimeout() time.Duration {
	if c.HeadTimeout > 0 {
		return c.HeadTimeout
	}
	return defaultHeadTimeout
}

// CloseWrite half-closes the connection if it has halves.
func (c *Conn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return c.Conn.Close()
}

// IsUpgradeToken reports whether an Upgrade field's value names the protocol.
func IsUpgradeToken(value, protocol string) bool {
	for item := range strings.SplitSeq(value, ",") {
		name, _, _ := strings.Cut(strings.Trim(item, " \t"), "/")
		if strings.EqualFold(name, protocol) {
			return true
		}
	}
	return false
}
