package http1

import (
	"bytes"
	"io"
	"time"
)

// refusal is what the server reads in place of a head that was refused.
const refusal = " / HTTP/1.1\r\nHost: malformed.invalid\r\nConnection: close\r\n\r\n"

// hopeless refuses what can no longer become a head, so that nothing waits for
// an end that does not come. The bytes before from have been checked already.
//
// Threat: a client sends a long head byte by byte, to be read anew each time ->
// the request line is parsed when its end arrives, and not again. Left over: a
// search for that end per read.
func hopeless(buf []byte, from, limit int) *Error {
	if len(buf) >= limit {
		return &Error{Status: 431, Detail: "the request head is too large"}
	}
	if bytes.Contains(buf[from:], []byte("\n\n")) {
		return malformed("a line of the request head ends in LF without CR")
	}
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		if i < from {
			return nil
		}
		var r Request
		line, _, err := cutLine(buf[:i+1])
		if err != nil {
			return err
		}
		return r.parseRequestLine(line)
	}
	for i, b := range buf {
		if b == ' ' {
			return nil
		}
		if !tokenByte(b) && !(b == '\r' && i == 0) {
			return malformed("the method is not a token")
		}
	}
	if len(buf) > maxMethod {
		return malformed("the method is not a token")
	}
	return nil
}

func (c *Conn) refuse(bad *Error) {
	method, _, _ := bytes.Cut(c.buf[:min(len(c.buf), maxMethod)], []byte(" "))
	r := Request{Err: bad, HeadBytes: len(c.buf)}
	if isToken(method) {
		r.Method = string(method)
	}
	c.refuseRequest(r)
}

// refuseRequest delivers the stand-in for a head that was refused.
func (c *Conn) refuseRequest(r Request) {
	c.mode = refused
	if c.given > 0 { // part of it is with the server already; the connection just ends
		c.buf, c.given = nil, 0
		return
	}
	method := "GET"
	if r.Method == "HEAD" {
		method = "HEAD"
	}
	c.push(r)
	c.buf = []byte(method + refusal)
	c.pass = len(c.buf)
}

// Close closes the connection. After a refusal it first lets the client read
// the answer: a close with unread input would send a reset that can overtake it
// (RFC 9112 section 9.6).
func (c *Conn) Close() error {
	if c.readMu.TryLock() {
		if c.mode == refused {
			c.linger()
		}
		c.readMu.Unlock()
	}
	return c.Conn.Close()
}

func (c *Conn) linger() {
	if c.CloseWrite() != nil || c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}
