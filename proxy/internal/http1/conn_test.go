package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/net/http/httpguts"
)

// memConn is a client that sends what r holds and then ends.
type memConn struct {
	net.Conn
	r io.Reader
}

func (c *memConn) Read(p []byte) (int, error)         { return c.r.Read(p) }
func (c *memConn) Write(p []byte) (int, error)        { return len(p), nil }
func (c *memConn) Close() error                       { return nil }
func (c *memConn) SetReadDeadline(time.Time) error    { return nil }
func (c *memConn) SetWriteDeadline(t time.Time) error { return nil }

// message is one request as a Conn read it.
type message struct {
	Request
	content string
	err     error // of the content
}

// drain reads all requests of a stream.
func drain(r io.Reader) (c *Conn, all []message, err error) {
	c = NewConn(&memConn{r: r})
	for {
		r, err := c.Next(time.Minute)
		if err != nil {
			return c, all, err
		}
		m := message{Request: r}
		if r.Err == nil {
			var b []byte
			b, m.err = io.ReadAll(reader{c})
			m.content = string(b)
		}
		all = append(all, m)
	}
}

// reader reads content.
type reader struct{ c *Conn }

func (r reader) Read(p []byte) (int, error) { return r.c.ReadBody(p) }

const (
	get  = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n"
	post = "POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"
	chnk = "POST /c HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0a\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"
)

func TestStream(t *testing.T) {
	stream := get + post + chnk + get
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			_, all, err := drain(r)
			if err != io.EOF || len(all) != 4 {
				t.Fatalf("%d requests, %v", len(all), err)
			}
			for i, want := range []struct{ path, content string }{{"/a", ""}, {"/b", "hello"}, {"/c", "hello0123456789"}, {"/a", ""}} {
				if m := all[i]; m.Path != want.path || m.content != want.content || m.Err != nil || m.err != nil {
					t.Errorf("got %s %q %v %v, want %v", m.Path, m.content, m.Err, m.err, want)
				}
			}
			if got := all[2].Trailer["X-Sum"]; len(got) != 1 || got[0] != "1" {
				t.Errorf("trailers %v", all[2].Trailer)
			}
		})
	}
}

// A request line is parsed once, however slowly the rest of its head arrives.
func TestSlowHeadIsParsedOnce(t *testing.T) {
	head := "GET /" + strings.Repeat("x", 500) + " HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n"
	allocs := testing.AllocsPerRun(3, func() {
		if _, all, err := drain(iotest.OneByteReader(strings.NewReader(head))); len(all) != 1 {
			t.Fatal(err)
		}
	})
	if allocs > 100 {
		t.Errorf("%.0f allocations for a head of %d bytes", allocs, len(head))
	}
}

// A refused head is the last, and nothing that follows it is read.
func TestRefusedHeadIsTheLast(t *testing.T) {
	for _, bad := range []string{
		"GET /secret HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /secret HTTP/1.1\nHost: a\n\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x02\x00secret",
		strings.Repeat("A", 100),
		"GET /secret HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 10000),
		"\r\n\r\n\r\nGET /secret HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		_, all, err := drain(strings.NewReader(get + bad + get))
		if err != io.EOF || len(all) != 2 || all[0].Err != nil || all[1].Err == nil {
			t.Errorf("%.30q: %+v, %v", bad, all, err)
		}
	}
}

func TestOneEmptyLineIsSkipped(t *testing.T) {
	_, all, err := drain(iotest.OneByteReader(strings.NewReader("\r\n" + get + "\r\n" + get)))
	if err != io.EOF || len(all) != 2 || all[0].Err != nil || all[1].Err != nil {
		t.Errorf("got %+v, %v", all, err)
	}
}

func TestBadBodies(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct{ name, body, passed string }{
		{"not hex", "g\r\n", ""},
		{"0x", "0x5\r\nhello\r\n", ""},
		{"plus", "+5\r\nhello\r\n", ""},
		{"minus", "-5\r\nhello\r\n", ""},
		{"space before", " 5\r\nhello\r\n", ""},
		{"space behind", "5 \r\nhello\r\n", ""},
		{"underscore", "1_0\r\n", ""},
		{"too large", "1000000000000000\r\n", ""},
		{"empty", "\r\n", ""},
		{"LF alone", "5\nhello\r\n", ""},
		{"CR in the extension", "5;a\rb\r\nhello\r\n", ""},
		{"LF ends the extension", "5;a\nhello\r\n", ""},
		{"nul in the extension", "5;\x00\r\nhello\r\n", ""},
		{"long extension", "5;" + strings.Repeat("a", 300) + "\r\nhello\r\n", ""},
		{"longer than it says", "5\r\nhelloX\r\n", "hello"},
		{"LF behind the data", "5\r\nhello\n", "hello"},
		{"trailer that frames", "0\r\nContent-Length: 3\r\n\r\n", ""},
		{"trailer Host", "0\r\nHost: b\r\n\r\n", ""},
		{"folded trailer", "0\r\nX: a\r\n b\r\n\r\n", ""},
		{"LF in trailers", "0\r\nX: a\n\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, all, _ := drain(strings.NewReader(head + tt.body + get))
			var bad *Error
			if len(all) != 1 || !errors.As(all[0].err, &bad) || c.BodyErr() == nil {
				t.Fatalf("got %+v", all)
			}
			if all[0].content != tt.passed {
				t.Errorf("passed %q, want %q", all[0].content, tt.passed)
			}
		})
	}
}

func TestCutShortBody(t *testing.T) {
	for _, in := range []string{post[:len(post)-1], chnk[:len(chnk)-2], chnk[:len(chnk)-30]} {
		_, all, err := drain(strings.NewReader(in))
		if err != io.EOF || len(all) != 1 || all[0].err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %+v, %v", in, all, err)
		}
	}
}

func TestManyExtensionsAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range 200 {
		b.WriteString("1;" + strings.Repeat("e", 200) + "\r\nx\r\n")
	}
	if _, all, _ := drain(strings.NewReader(b.String())); len(all) != 1 || all[0].err == nil {
		t.Error("40 KB of extensions passed")
	}
}

// What follows a request that changed the protocol is read as it is.
func TestReadIsRaw(t *testing.T) {
	const head = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	raw := "\x81\x00\r\n\r\nnot http"
	c := NewConn(&memConn{r: strings.NewReader(head + raw)})
	if r, err := c.Next(time.Minute); err != nil || !r.Upgrade {
		t.Fatal(r, err)
	}
	if rest, err := io.ReadAll(c); err != nil || string(rest) != raw {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestSlowHeadIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		c.HeadTimeout = 3 * time.Second
		go func() { _, _ = client.Write([]byte("GET /slow HTTP/1.1\r\nHo")) }()
		start := time.Now()
		r, err := c.Next(time.Minute)
		if err != nil || r.Err == nil || r.Err.Status != 408 {
			t.Fatalf("got %+v, %v", r, err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("refused after %v", d)
		}
		_ = client.Close()
		_ = c.Close()
	})
}

// The clock of a head must not end a wait between requests, nor a request's own.
func TestClocksAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		c.HeadTimeout, c.IdleTimeout = 3*time.Second, 10*time.Second
		go func() {
			for _, part := range []string{get[:5], get[5:], post[:len(post)-1]} {
				_, _ = client.Write([]byte(part))
				time.Sleep(2 * time.Second)
			}
			time.Sleep(7 * time.Second)
			_, _ = client.Write([]byte(post[len(post)-1:]))
			time.Sleep(50 * time.Second)
			_, _ = client.Write([]byte(get))
		}()
		for _, want := range []string{"/a", "/b", "/a"} {
			r, err := c.Next(time.Minute)
			if err != nil || r.Path != want {
				t.Fatalf("got %+v, %v", r, err)
			}
			if _, err := io.Copy(io.Discard, reader{c}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if _, err := c.Next(time.Minute); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(start); d < time.Minute || d > time.Minute+slack(time.Minute) {
			t.Errorf("waited for %v", d)
		}
		_ = client.Close()
	})
}

// While a request is served, its client's end is told when it is sure, and what
// the client sends next is kept.
func TestWatch(t *testing.T) {
	const never = -1
	for name, tt := range map[string]struct {
		do   func(client net.Conn, c *Conn)
		took time.Duration // until gone was called
	}{
		"ended":     {func(client net.Conn, _ *Conn) { _ = client.Close() }, DefaultEndGrace},
		"pipelined": {func(client net.Conn, _ *Conn) { _, _ = client.Write([]byte(get)) }, never},
		"closed":    {func(_ net.Conn, c *Conn) { c.Abort() }, 0},
		"served":    {func(client net.Conn, c *Conn) { c.Unwatch(); _ = client.Close() }, never},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				c := NewConn(server)
				go func() { _, _ = client.Write([]byte(get)) }()
				if r, err := c.Next(time.Minute); err != nil || r.Err != nil {
					t.Fatal(r, err)
				}
				took, start := time.Duration(never), time.Now()
				c.Watch(func() { took = time.Since(start) })
				time.Sleep(time.Second)
				start = time.Now()
				tt.do(client, c)
				time.Sleep(time.Hour)
				if name != "served" {
					c.Unwatch()
				}
				if took != tt.took {
					t.Errorf("told after %v, want %v", took, tt.took)
				}
				if r, err := c.Next(time.Minute); name == "pipelined" && (err != nil || r.Path != "/a") {
					t.Error(r, err)
				}
				_, _ = client.Close(), server.Close()
			})
		})
	}
}

// While the client's end is looked for, nobody else waits: an answer must not depend
// on what the client sends next.
func TestWatchHoldsNobodyUp(t *testing.T) {
	for name, ask := range map[string]func(c *Conn) any{
		"BodyErr":  func(c *Conn) any { return c.BodyErr() == nil },
		"BodyDone": func(c *Conn) any { return c.BodyDone() },
		"ReadBody": func(c *Conn) any { _, err := c.ReadBody(make([]byte, 9)); return err == io.EOF }, //nolint:errorlint // io.Reader
		"Write":    func(c *Conn) any { _, err := c.Write([]byte("x")); return err == nil },
	} {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			c := NewConn(server)
			c.EndGrace = time.Millisecond
			go func() { _, _ = client.Write([]byte(post)); _, _ = client.Read(make([]byte, 9)) }()
			if r, err := c.Next(time.Minute); err != nil || r.Err != nil {
				t.Fatal(r, err)
			}
			for !c.BodyDone() { // as a transport does that knows the length
				if _, err := c.ReadBody(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
			c.Watch(func() {})
			for c.readMu.TryLock() {
				c.readMu.Unlock()
				time.Sleep(time.Millisecond)
			}
			free := time.AfterFunc(10*time.Second, func() { _ = client.Close() })
			if ask(c) != true || !free.Stop() {
				t.Error("it waited for the client")
			}
			c.Unwatch()
			_, _ = client.Close(), server.Close()
		})
	}
}

// A draining connection ends at once between two requests, and after the request
// that is under way.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		go func() {
			_, _ = client.Write([]byte(get[:9]))
			time.Sleep(time.Second)
			c.Drain()
			_, _ = client.Write([]byte(get[9:]))
		}()
		if r, err := c.Next(time.Minute); err != nil || r.Path != "/a" {
			t.Fatal(r, err)
		}
		if _, err := c.Next(time.Minute); err == nil {
			t.Error("it went on")
		}
		c = NewConn(server)
		go func() { time.Sleep(time.Second); c.Drain() }()
		start := time.Now()
		if _, err := c.Next(time.Minute); err == nil || time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
		_ = client.Close()
	})
}

// A request that was sent before the connection drained is served, and is the last.
func TestDrainBeforeTheFirstRequest(t *testing.T) {
	c := NewConn(&memConn{r: strings.NewReader(get + get)})
	c.Drain()
	if r, err := c.Next(time.Minute); err != nil || r.Path != "/a" || !c.Draining() {
		t.Fatal(r, err)
	}
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		c.Drain()
		start := time.Now()
		if _, err := c.Next(time.Minute); err == nil || time.Since(start) != drainPatience {
			t.Error(err, time.Since(start))
		}
		_ = client.Close()
	})
}

// FuzzStream feeds any stream and takes net/http as the oracle: what the gate
// reads as requests, net/http reads as the same requests, with the same content.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		get, post, chnk, get + post + chnk, "\r\n" + get, "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get,
		"GET http://a.example:8080/%2e?q=%zz HTTP/1.1\r\nHost: a.example:8080\r\nX: 1\r\nx: 2\r\nConnection: close, X\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTrailer: A, b\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nA: 1\r\nC: 2\r\n\r\n" + get,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, slowly bool) {
		var r io.Reader = bytes.NewReader(in)
		if slowly {
			r = iotest.OneByteReader(r)
		}
		_, all, _ := drain(r)
		br := bufio.NewReader(bytes.NewReader(in))
		for _, m := range all {
			if m.Err != nil || m.Method == "CONNECT" || m.Upgrade {
				return
			}
			if b, err := br.Peek(2); err == nil && string(b) == "\r\n" { // net/http skips none
				_, _ = br.Discard(2)
			}
			req, err := http.ReadRequest(br)
			if err != nil || m.HasHost && !httpguts.ValidHostHeader(m.Host) {
				t.Fatalf("net/http refuses a head that the gate takes: %v in %q", err, in)
			}
			if !sameRequest(t, in, m, req) {
				return
			}
		}
	})
}

// sameRequest compares what both made of one request. False: its content did not
// end.
func sameRequest(t *testing.T, in []byte, m message, req *http.Request) bool {
	t.Helper()
	if req.Method != m.Method || req.RequestURI != m.Target {
		t.Fatalf("net/http reads %s %s, the gate %s %s", req.Method, req.RequestURI, m.Method, m.Target)
	}
	if m.Form != FormAbsolute && req.Host != m.Host {
		t.Fatalf("net/http reads host %q, the gate %q", req.Host, m.Host)
	}
	if m.Minor == 1 && req.Close != m.Close || req.ContentLength != m.Length {
		t.Fatalf("net/http reads close %v, length %d, the gate %v, %d in %q", req.Close, req.ContentLength, m.Close, m.Length, in)
	}
	if v := req.Header["Pragma"]; len(v) == 0 && !maps.EqualFunc(req.Header, http.Header(m.Header), slices.Equal) {
		t.Fatalf("net/http reads the fields %q, the gate %q", req.Header, m.Header)
	}
	content, err := io.ReadAll(req.Body)
	if m.err != nil {
		return false
	}
	if err != nil || string(content) != m.content {
		t.Fatalf("net/http reads the content %q, %v, the gate %q in %q", content, err, m.content, in)
	}
	if !maps.EqualFunc(req.Trailer, http.Header(m.Trailer), slices.Equal) {
		t.Fatalf("net/http reads the trailers %q, the gate %q in %q", req.Trailer, m.Trailer, in)
	}
	return true
}
