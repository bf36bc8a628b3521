package fetch

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

// Field is one header field as it goes out.
type Field struct{ Name, Value string }

// Call is one request to one origin, without redirects.
type Call struct {
	To     *Target
	Method string
	Fields []Field // Host is among them
	Body   *Payload
	Decode bool // undo Content-Encoding

	Connect time.Duration // for the connection; 0: no limit of its own
	Trust   *Trust
	Dial    func(context.Context) (net.Conn, error)
	Note    func(kind byte, line string) // -v: '*', '>', '<', '{', '}'
	Clock   Clocks
}

// Answer is the response to a call. The caller calls close, always.
type Answer struct {
	Resp    *http.Response
	Heads   []byte // all heads as they came, the last one at the end
	Last    []byte // the last head
	Body    io.Reader
	Sent    int64 // bytes of the request's body
	HeadOut int64

	Connected, Secured, Started time.Duration

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

func (a *Answer) Close() {
	if a != nil && a.finish != nil {
		a.finish()
	}
}

// Do makes the call. It returns when the head of the answer is there.
func (c *Call) Do(ctx context.Context) (*Answer, *Failure) {
	a := &Answer{}
	conn, f := c.open(ctx, a)
	if f != nil {
		return nil, f
	}
	// Closing the connection is what ends every read and write on it.
	stop := context.AfterFunc(ctx, func() { _ = a.raw.Close() })
	head := c.head()
	a.HeadOut = int64(len(head))
	written := make(chan int64, 1)
	go func() { written <- c.send(conn, head) }()
	a.finish = func() {
		stop()
		select {
		case a.Sent = <-written:
			_ = conn.Close() // with a goodbye, where it is TLS
		default:
			_ = a.raw.Close() // the other side does not read: a goodbye would wait
			a.Sent = <-written
		}
		a.finish = nil
	}
	_, fields, _ := strings.Cut(strings.TrimSuffix(head, "\r\n"), "\r\n")
	c.Note('>', c.Method+" "+c.To.Path+c.To.Query+" HTTP/1.1\r")
	for line := range strings.SplitSeq(fields, "\r\n") {
		c.Note('>', line+"\r")
	}
	if f := c.receive(ctx, a); f != nil {
		a.Close()
		return nil, f
	}
	a.Started = c.Clock.Elapsed()
	return a, nil
}

// head is the request line and fields, with the empty line.
func (c *Call) head() string {
	at := c.To.Path + c.To.Query
	if c.To.Scheme == "http" {
		at = "http://" + c.To.AuthorityText() + at // absolute-form, RFC 9112 section 3.2.2
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", c.Method, at)
	for _, f := range c.Fields {
		if f.Value == "" {
			fmt.Fprintf(&b, "%s:\r\n", f.Name)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	return b.String() + "\r\n"
}

// send writes head and body; it reports how much of the body went. What fails
// here shows in the answer, or in its absence.
func (c *Call) send(w io.Writer, head string) int64 {
	if _, err := io.WriteString(w, head); err != nil || c.Body == nil {
		return 0
	}
	r, f := c.Body.reader()
	if f != nil {
		return 0
	}
	defer r.Close()
	if c.chunked() {
		return sendChunks(w, r)
	}
	n, _ := io.Copy(w, io.LimitReader(r, c.Body.Size))
	return n
}

func (c *Call) chunked() bool {
	for _, f := range c.Fields {
		if strings.EqualFold(f.Name, "Transfer-Encoding") {
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
func (c *Call) receive(ctx context.Context, a *Answer) *Failure {
	br := bufio.NewReaderSize(a.conn, 16<<10)
	for {
		head, f := c.readHead(ctx, br, headMax-len(a.Heads))
		if f != nil {
			return f
		}
		a.Heads, a.Last = append(a.Heads, head...), head
		resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(plain(head)), br)), &http.Request{Method: c.Method})
		if err != nil {
			return Fail(ExitWeird, "Invalid answer: %v", err)
		}
		if resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		a.Resp, a.Body = resp, resp.Body
		if f := c.judge(a); f != nil {
			return f
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(string(a.Heads), "\n"), "\n") {
			c.Note('<', line)
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

func (c *Call) readHead(ctx context.Context, br *bufio.Reader, most int) ([]byte, *Failure) {
	var head []byte
	for {
		line, err := br.ReadSlice('\n')
		head = append(head, line...)
		if len(head) == 0 && err != nil {
			return nil, receiving(ctx, c.Clock, err, 0)
		}
		if !bytes.HasPrefix(head, []byte("HTTP/")[:min(5, len(head))]) {
			return nil, Fail(ExitProtocol, "Received HTTP/0.9 when not allowed")
		}
		if len(head) > most {
			return nil, Fail(ExitReceive, "Too large response headers: %d > %d", len(head), headMax)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, receiving(ctx, c.Clock, err, 0)
		case len(line) <= 2 && len(bytes.Trim(line, "\r\n")) == 0:
			return head, nil
		}
	}
}

// judge tells an answer of the gate from one of the origin, and undoes the
// coding of the body.
func (c *Call) judge(a *Answer) *Failure {
	if c.To.Scheme == "http" || a.byGate {
		if r := fromGate(a.Resp.Header, c.To, ""); r != nil {
			text, _ := io.ReadAll(io.LimitReader(a.Body, gateMax)) // without it there is less to say
			return fromGate(a.Resp.Header, c.To, string(text)).failure(c.To, c.Method, a.Resp.StatusCode)
		}
	}
	if !c.Decode {
		return nil
	}
	body, err := decoded(a.Resp.Header.Get("Content-Encoding"), a.Body)
	if err != nil {
		return Fail(exitEncoding, "Unrecognized content encoding type. libcurl understands deflate, gzip content encodings.")
	}
	a.Body = body
	return nil
}

// Remaining says what is missing of a body that ended after got bytes.
func (a *Answer) Remaining(got int64) string {
	if n := a.Resp.ContentLength; n >= 0 {
		return fmt.Sprintf("transfer closed with %d bytes remaining to read", n-got)
	}
	return "transfer closed with outstanding read data remaining"
}
