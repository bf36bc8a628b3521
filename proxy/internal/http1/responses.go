package http1

import (
	"bytes"
	"io"
	"net/textproto"
)

// Responses reads the responses on one connection to an origin, strictly and in
// order: Next for a head, Read for the content behind it. After an error nothing
// more can be read. One goroutine uses it at a time.
type Responses struct {
	Source    io.Reader
	HeadBytes int // bounds a head; zero means 32 KiB

	buf  []byte    // read and not yet taken
	base []byte    // the array behind buf
	cur  *Response // whose content is read; nil: none
	body body
	some bool  // of the response under way something has arrived
	err  error // sticky
}

// Begin says that a request is being sent, and gives the buffer to read with,
// of 4 KiB or so, until End.
func (r *Responses) Begin(buf []byte) { r.base, r.buf, r.some = buf, nil, false }

// End gives the buffer back. It reports whether the last response was read to
// its end, and nothing behind it, so that another request may follow.
func (r *Responses) End() bool {
	whole := r.err == nil && r.cur != nil && !r.cur.Last && r.cur.Status >= 200 && r.body.phase == done && len(r.buf) == 0
	r.base, r.buf, r.cur = nil, nil, nil
	return whole
}

// Begun reports whether anything has arrived since Begin.
func (r *Responses) Begun() bool { return r.some }

// Next reads the head of the response to a request with the method: the final
// one, or one with status 1xx before it. Its error is io.EOF if the connection
// ended instead, and an *Error if the head cannot be read in one way only.
func (r *Responses) Next(method string) (*Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	resp, err := r.head(method)
	if err != nil {
		r.err = err
		return nil, err
	}
	r.cur, r.body = resp, resp.body
	return resp, nil
}

func (r *Responses) head(method string) (*Response, error) {
	most := r.HeadBytes
	if most <= 0 {
		most = defaultHeadBytes
	}
	at := 0 // of the first line that has not been looked at
	for {
		n, bad := headEnd(r.buf, &at)
		switch {
		case bad != nil:
			return nil, bad
		case n > most || n == 0 && len(r.buf) >= most:
			return nil, malformed("the head is too large")
		case n > 0:
			resp, bad := ParseResponse(r.buf[:n], method)
			r.buf = r.buf[n:]
			if bad != nil {
				return nil, bad
			}
			return resp, nil
		}
		if err := r.fill(); err != nil {
			if err == io.EOF && len(r.buf) > 0 { //nolint:errorlint // io.Reader: EOF comes bare
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// headEnd reports the length of the head at the front of buf; 0: more bytes are
// needed. What cannot become a head is refused without waiting for its end. The
// lines before at have been looked at.
func headEnd(buf []byte, at *int) (int, *Error) {
	const version = "HTTP/1."
	if n := min(len(buf), len(version)); string(buf[:n]) != version[:n] {
		return 0, malformed("the response does not begin with HTTP/1.")
	}
	for {
		i := bytes.IndexByte(buf[*at:], '\n')
		if i < 0 {
			return 0, nil
		}
		if i == 0 || buf[*at+i-1] != '\r' {
			return 0, malformed("a line of the response head ends in LF without CR")
		}
		*at += i + 1
		if i == 1 {
			return *at, nil
		}
	}
}

// fill reads more into buf.
func (r *Responses) fill() error {
	if len(r.buf) == 0 {
		r.buf = r.base[:0]
	}
	if len(r.buf) == cap(r.buf) {
		if size := max(firstBuffer, 2*len(r.buf)); size <= len(r.base) {
			r.buf = r.base[:copy(r.base, r.buf)]
		} else {
			r.base = make([]byte, size)
			r.buf = r.base[:copy(r.base, r.buf)]
		}
	}
	n, err := r.Source.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	if n > 0 {
		r.some = true
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// Ready reports whether the next Read needs nothing from the connection.
func (r *Responses) Ready() bool {
	for r.err == nil && r.cur != nil && !r.whole() {
		if r.content() > 0 {
			return len(r.buf) > 0
		}
		if !r.line() {
			return false
		}
	}
	return true
}

// whole reports whether all of the content has been read.
func (r *Responses) whole() bool { return r.body.phase == done && !r.cur.toEnd }

// content is how many of the next bytes may be content.
func (r *Responses) content() int64 {
	if r.cur.toEnd {
		return 1 << 62
	}
	return r.body.data()
}

// line takes one line of chunk framing from buf; false: more bytes are needed.
// What it refuses is in err.
func (r *Responses) line() bool {
	inTrailers := r.body.phase == trailers
	n, bad := r.body.line(r.buf)
	if bad != nil {
		r.err = bad
		return true
	}
	if n > chunkCRLFBytes && inTrailers {
		name, value, _ := splitField(r.buf[:n-chunkCRLFBytes]) // line has looked at it
		key := textproto.CanonicalMIMEHeaderKey(string(name))
		r.cur.Trailer[key] = append(r.cur.Trailer[key], string(value))
	}
	r.buf = r.buf[n:]
	return n > 0
}

// Read reads content, without its framing. io.EOF: all of it has been read, and
// the trailers are there; what was cut short ends in another error.
func (r *Responses) Read(p []byte) (int, error) {
	for {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.cur == nil || r.whole():
			return 0, io.EOF
		case r.content() > 0:
			n, err := r.read(p)
			if n > 0 || err == nil {
				return n, nil // an error comes again
			}
			r.fail(err)
			continue
		}
		if !r.line() {
			if err := r.fill(); err != nil {
				r.fail(err)
			}
		}
	}
}

// read reads content into p: from the buffer, else straight from the connection
// if that is no more calls.
func (r *Responses) read(p []byte) (int, error) {
	most := r.content()
	if len(r.buf) == 0 && most < int64(min(len(p), firstBuffer)) {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	if int64(len(p)) > most {
		p = p[:most]
	}
	var n int
	var err error
	if len(r.buf) > 0 {
		n = copy(p, r.buf)
		r.buf = r.buf[n:]
	} else {
		n, err = r.Source.Read(p)
	}
	if !r.cur.toEnd && n > 0 {
		r.body.took(n)
	}
	return n, err
}

// fail ends the content with err, which is clean only where the connection's end
// is the content's.
func (r *Responses) fail(err error) {
	if err == io.EOF && !r.cur.toEnd { //nolint:errorlint // io.Reader: EOF comes bare
		err = io.ErrUnexpectedEOF
	}
	r.err = err
}
