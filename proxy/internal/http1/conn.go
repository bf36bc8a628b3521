// Package http1 frames HTTP/1 strictly, a client's requests and an origin's
// responses, and passes on only what it could frame.
//
// [Conn] stands between a client's connection and an HTTP server that reads
// from it. It reads each request head and body by the strictest reading of RFC
// 9112 first, and what it refuses the server behind it never sees: in its place
// the server reads a harmless request whose facts ([Conn.Next]) say what was
// wrong, so that the refusal is answered in its turn, and then the end of the
// stream.
//
// [Responses] does the same for what an origin answers.
//
// Threat: a client sends a stream that the gate and an origin (or two parsers
// inside the gate) split into requests at different places, and so hides a
// request from the judge -> a stream that is not framed in the one way every
// parser agrees on is refused before the server or an origin sees a byte of that
// head -> a body that turns out malformed half way has been passed on up to
// there; the origin sees it end without its last chunk.
package http1

import (
	"bytes"
	"errors"
	"io"
	"net"
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

type mode uint8

const (
	framing     mode = iota
	waiting          // after a head that asks for an upgrade: nothing is framed until the answer is known
	transparent      // after CONNECT or 101: bytes pass untouched
	refused          // nothing more is read
)

// Conn is the gate. One goroutine may read while another writes, as with any
// net.Conn. Set the fields before the first Read.
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
	// wait for its response. Zero: not at all. NewConn sets DefaultEndGrace.
	EndGrace time.Duration

	readMu  sync.Mutex // held by Read
	reading            // guarded by readMu

	phrase atomic.Pointer[string] // of the next final status line; nil: the server's own

	stateMu sync.Mutex
	state   // guarded by stateMu
}

// reading is how far a Conn has read and framed its client's stream.
type reading struct {
	mode  mode
	base  []byte // the array behind buf, used again when buf is empty
	buf   []byte // read and not yet delivered
	pass  int    // bytes at the front of buf that may be delivered
	given int    // in waiting: bytes at the front of buf delivered before they were framed
	body  body   // of the message whose bytes are being delivered
	scan  int    // where to go on looking for the end of the head
	blank bool   // the empty line before this request has been skipped
	err   error  // of the last read from Conn, sticky
	grown int    // what Grow was called with for base
}

// state is what the readers and the handlers of a Conn say to each other.
type state struct {
	queue   []Request // delivered, not yet taken by Next
	next    mode      // asked for by Upgrade or Resume
	asked   bool
	bad     *Error        // why a body was refused
	dl      time.Time     // the server's read deadline
	headEnd time.Time     // when the head under way must be complete; zero between heads
	busy    int           // requests delivered whose handlers are not done
	wake    chan struct{} // ends holdEnd; nil when nothing is held
	own     bool          // the deadline in force on Conn is the gate's, not the server's
}

// NewConn returns the gate in front of c.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c, EndGrace: DefaultEndGrace} }

// Next reports the facts of the next request in the order of the stream; ok is
// false when there is none. Call it once at the start of each request handler.
func (c *Conn) Next() (r Request, ok bool) {
	c.phrase.Store(nil)
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	if len(c.queue) == 0 {
		return Request{}, false
	}
	r = c.queue[0]
	c.queue = c.queue[1:]
	return r, true
}

// BodyErr reports why the body of the current request was refused half way;
// nil when it was not.
func (c *Conn) BodyErr() *Error {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	return c.bad
}

// Upgrade makes the gate transparent: what follows the current request is no
// longer HTTP/1.
func (c *Conn) Upgrade() { c.ask(transparent) }

// Resume says that the current request has been served. After one that asked
// for an upgrade and did not get it, what follows is framed again. Call it at
// the end of each request handler.
func (c *Conn) Resume() {
	c.ask(framing)
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.busy--
	c.wakeLocked()
}

func (c *Conn) ask(m mode) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.next, c.asked = m, true
}

// obey takes over what Upgrade or Resume asked for.
func (c *Conn) obey() {
	c.stateMu.Lock()
	m, asked := c.next, c.asked
	c.asked = false
	c.stateMu.Unlock()
	if !asked || c.mode == refused || c.mode == transparent {
		return
	}
	if m == transparent {
		c.mode, c.pass = transparent, len(c.buf)
		c.dropGiven()
		return
	}
	if c.mode == waiting {
		c.mode = framing
	}
}

// dropGiven forgets the bytes that were delivered before they were framed.
func (c *Conn) dropGiven() {
	c.buf = c.buf[c.given:]
	c.pass = max(0, c.pass-c.given)
	c.given = 0
}

// Read delivers bytes that could be framed.
func (c *Conn) Read(p []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	c.obey()
	for {
		if c.pass > 0 {
			n := copy(p, c.buf[:c.pass])
			if c.buf, c.pass = c.buf[n:], c.pass-n; len(c.buf) == 0 {
				c.shrink()
			}
			return n, nil
		}
		switch {
		case c.mode == refused:
			return 0, c.refusedErr()
		case c.mode == transparent:
			c.restoreDeadline()
			return c.Conn.Read(p)
		case c.mode == waiting && c.body.phase == done:
			return c.readWaiting(p)
		case c.body.data() > 0 && len(c.buf) == 0:
			return c.readData(p)
		}
		if err := c.advance(); err != nil {
			return 0, err
		}
	}
}

func (c *Conn) refusedErr() error {
	if bad := c.BodyErr(); bad != nil {
		return bad
	}
	return io.EOF
}

// readData reads content straight into p.
func (c *Conn) readData(p []byte) (int, error) {
	if d := c.body.data(); int64(len(p)) > d {
		p = p[:d]
	}
	c.setIdle()
	n, err := c.Conn.Read(p)
	c.body.took(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// readWaiting delivers one byte as it is: net/http waits for one byte to see
// that a client has gone, and hands it over with the hijacked connection.
func (c *Conn) readWaiting(p []byte) (int, error) {
	if c.given == len(c.buf) {
		c.restoreDeadline()
		if err := c.fill(); err != nil {
			return 0, err
		}
		c.obey()
		if c.mode == transparent {
			// Asked for while this read was waiting: the bytes are raw.
			n := copy(p, c.buf)
			c.buf, c.pass = c.buf[n:], len(c.buf)-n
			return n, nil
		}
	}
	p[0] = c.buf[c.given]
	c.given++
	return 1, nil
}

// advance frames more of buf, reading when it must.
func (c *Conn) advance() error {
	switch {
	case c.body.phase == done:
		return c.advanceHead()
	case c.body.data() > 0 && len(c.buf) > 0:
		n := int(min(c.body.data(), int64(len(c.buf))))
		c.body.took(n)
		c.pass = n
		return nil
	}
	n, bad := c.body.line(c.buf)
	if bad != nil {
		c.stateMu.Lock()
		c.bad = bad
		c.stateMu.Unlock()
		c.mode = refused
		return bad
	}
	if n > 0 {
		c.pass = n
		return nil
	}
	c.setIdle()
	return c.fill()
}

// advanceHead looks for one whole head.
func (c *Conn) advanceHead() error {
	if c.scan == 0 && c.given == 0 && bytes.HasPrefix(c.buf, []byte("\r\n")) {
		// RFC 9112 section 2.2: one empty line before a request is ignored.
		if c.blank {
			c.refuse(malformed("empty lines before the request line"))
			return nil
		}
		c.buf, c.blank = c.buf[2:], true
	}
	if i := bytes.Index(c.buf[c.scan:], []byte("\n\r\n")); i >= 0 && c.scan+i+3 <= c.headBytes() {
		c.takeHead(c.scan + i + 3)
		return nil
	}
	if bad := hopeless(c.buf, c.scan, c.headBytes()); bad != nil {
		c.refuse(bad)
		return nil
	}
	c.scan = max(0, len(c.buf)-2)
	if len(c.buf) == 0 {
		c.restoreDeadline()
		return c.fill()
	}
	c.startHeadClock()
	err := c.fill()
	c.restoreDeadline()
	if err == errNoRoom { //nolint:errorlint // our own
		c.refuse(&Error{Status: 503, Detail: "unfinished requests hold all the memory that is set aside for them"})
		return nil
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && !c.aborted() {
		c.refuse(&Error{Status: 408, Detail: "the request head did not arrive in time"})
		return nil
	}
	return err
}

// takeHead reads the n bytes of a head at the front of buf.
func (c *Conn) takeHead(n int) {
	r := ParseHead(c.buf[:n])
	c.scan, c.blank = 0, false
	c.stopHeadClock()
	if r.Err != nil {
		c.refuseRequest(r)
		return
	}
	c.push(r)
	c.pass, c.body = n, r.body
	switch {
	case r.Method == "CONNECT":
		c.mode, c.pass = transparent, len(c.buf)
	case r.Upgrade:
		c.mode = waiting
	}
	c.dropGiven()
}

func (c *Conn) push(r Request) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.queue = append(c.queue, r)
	c.busy++
}

// ended is err as the server may know it now.
func (c *Conn) ended(err error) error {
	if err == io.EOF && c.body.phase == done && len(c.buf) == c.given { //nolint:errorlint // io.Reader: EOF comes bare
		return c.holdEnd()
	}
	return err
}

func (c *Conn) headBytes() int {
	if c.HeadBytes > 0 {
		return c.HeadBytes
	}
	return defaultHeadBytes
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
