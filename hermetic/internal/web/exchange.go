package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Implementation constants.
const (
	headMax = 300 << 10 // bytes of the heads of one answer, as in curl
	gateMax = 16 << 10  // bytes of an answer of the gate itself
)

// field is one header field as it goes out.
type field struct{ name, value string }

// call is one request to one origin, without redirects.
type call struct {
	to     *target
	method string
	fields []field // Host is among them
	body   *payload
	decode bool // undo Content-Encoding

	connect time.Duration // for the connection; 0: no limit of its own
	trust   *trust
	dial    func(context.Context) (net.Conn, error)
	note    func(kind byte, line string) // -v: '*', '>', '<', '{', '}'
	clock   clocks
}

// answer is the response to a call. The caller calls close, always.
type answer struct {
	resp    *http.Response
	heads   []byte // all heads as they came, the last one at the end
	last    []byte // the last head
	body    io.Reader
	sent    int64 // bytes of the request's body
	headOut int64

	connected, secured, started time.Duration

	byGate bool // the gate ended this TLS itself
	conn   *link
	raw    net.Conn // below TLS
	finish func()
}

// link counts what was read, so that a broken body can be told of.
type link struct {
	net.Conn
	got int64
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.got += int64(n)
	return n, err
}

func (a *answer) close() {
	if a != nil && a.finish != nil {
		a.finish()
	}
}

// do makes the call. It returns when the head of the answer is there.
func (c *call) do(ctx context.Context) (*answer, *failure) {
	a := &answer{}
	conn, f := c.open(ctx, a)
	if f != nil {
		return nil, f
	}
	// Closing the connection is what ends every read and write on it.
	stop := context.AfterFunc(ctx, func() { _ = a.raw.Close() })
	head := c.head()
	a.headOut = int64(len(head))
	written := make(chan int64, 1)
	go func() { written <- c.send(conn, head) }()
	a.finish = func() {
		stop()
		select {
		case a.sent = <-written:
			_ = conn.Close() // with a goodbye, where it is TLS
		default:
			_ = a.raw.Close() // the other side does not read: a goodbye would wait
			a.sent = <-written
		}
		a.finish = nil
	}
	_, fields, _ := strings.Cut(strings.TrimSuffix(head, "\r\n"), "\r\n")
	c.note('>', c.method+" "+c.to.path+c.to.query+" HTTP/1.1\r")
	for line := range strings.SplitSeq(fields, "\r\n") {
		c.note('>', line+"\r")
	}
	if f := c.receive(ctx, a); f != nil {
		a.close()
		return nil, f
	}
	a.started = c.clock.elapsed()
	return a, nil
}

// head is the request line and fields, with the empty line.
func (c *call) head() string {
	at := c.to.path + c.to.query
	if c.to.scheme == "http" {
		at = "http://" + c.to.authorityText() + at // absolute-form, RFC 9112 section 3.2.2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", c.method, at)
	for _, f := range c.fields {
		if f.value == "" {
			fmt.Fprintf(&b, "%s:\r\n", f.name)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	return b.String() + "\r\n"
}

// send writes head and body; it reports how much of the body went. What fails
// here shows in the answer, or in its absence.
func (c *call) send(w io.Writer, head string) int64 {
	if _, err := io.WriteString(w, head); err != nil || c.body == nil {
		return 0
	}
	r, f := c.body.reader()
	if f != nil {
		return 0
	}
	defer r.Close()
	if c.chunked() {
		return sendChunks(w, r)
	}
	n, _ := io.Copy(w, io.LimitReader(r, c.body.size))
	return n
}

func (c *call) chunked() bool {
	for _, f := range c.fields {
		if strings.EqualFold(f.name, "Transfer-Encoding") {
			return true
		}
	}
	return false
}

func sendChunks(w io.Writer, r io.Reader) (sent int64) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := fmt.Fprintf(w, "%x\r\n%s\r\n", n, buf[:n]); werr != nil {
				return sent
			}
			sent += int64(n)
		}
		if err != nil {
			_, _ = io.WriteString(w, "0\r\n\r\n")
			return sent
		}
	}
}

// receive reads heads until one that is not 1xx.
func (c *call) receive(ctx context.Context, a *answer) *failure {
	br := bufio.NewReaderSize(a.conn, 16<<10)
	for {
		head, f := c.readHead(ctx, br, headMax-len(a.heads))
		if f != nil {
			return f
		}
		a.heads, a.last = append(a.heads, head...), head
		resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(plain(head)), br)), &http.Request{Method: c.method})
		if err != nil {
			return fail(exitWeird, "Invalid answer: %v", err)
		}
		if resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		a.resp, a.body = resp, resp.Body
		if f := c.judge(a); f != nil {
			return f
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(a.heads), "\n"), "\n") {
			c.note('<', line)
		}
		return nil
	}
}

// plain makes a head of LF lines one that package http reads, and takes out
// what it would fail over for no need.
func plain(head []byte) []byte {
	lines := bytes.Split(bytes.TrimRight(head, "\r\n"), []byte("\n"))
	out := make([]byte, 0, len(head)+8)
	for i, l := range lines {
		l = bytes.TrimSuffix(l, []byte("\r"))
		if i > 0 && (bytes.IndexByte(l, ':') <= 0 || bytes.ContainsAny(l[:bytes.IndexByte(l, ':')], " \t")) {
			continue
		}
		out = append(append(out, l...), "\r\n"...)
	}
	return append(out, "\r\n"...)
}

func (c *call) readHead(ctx context.Context, br *bufio.Reader, most int) ([]byte, *failure) {
	var head []byte
	for {
		line, err := br.ReadSlice('\n')
		head = append(head, line...)
		if len(head) == 0 && err != nil {
			return nil, receiving(ctx, c.clock, err, 0)
		}
		if !bytes.HasPrefix(head, []byte("HTTP/")[:min(5, len(head))]) {
			return nil, fail(exitProtocol, "Received HTTP/0.9 when not allowed")
		}
		if len(head) > most {
			return nil, fail(exitReceive, "Too large response headers: %d > %d", len(head), headMax)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, receiving(ctx, c.clock, err, 0)
		case len(line) <= 2 && len(bytes.Trim(line, "\r\n")) == 0:
			return head, nil
		}
	}
}

// judge tells an answer of the gate from one of the origin, and undoes the
// coding of the body.
func (c *call) judge(a *answer) *failure {
	if c.to.scheme == "http" || a.byGate {
		if r := fromGate(a.resp.Header, c.to, ""); r != nil {
			text, _ := io.ReadAll(io.LimitReader(a.body, gateMax)) // without it there is less to say
			return fromGate(a.resp.Header, c.to, string(text)).failure(c.to, c.method, a.resp.StatusCode)
		}
	}
	if !c.decode {
		return nil
	}
	body, err := decoded(a.resp.Header.Get("Content-Encoding"), a.body)
	if err != nil {
		return fail(exitEncoding, "Unrecognized content encoding type. libcurl understands deflate, gzip content encodings.")
	}
	a.body = body
	return nil
}

// remaining says what is missing of a body that ended after got bytes.
func (a *answer) remaining(got int64) string {
	if n := a.resp.ContentLength; n >= 0 {
		return fmt.Sprintf("transfer closed with %d bytes remaining to read", n-got)
	}
	return "transfer closed with outstanding read data remaining"
}
