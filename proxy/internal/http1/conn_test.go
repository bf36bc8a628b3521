package http1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
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

func drain(t testing.TB, r io.Reader) (*Conn, string, error) {
	t.Helper()
	c := NewConn(&memConn{r: r})
	c.EndGrace = 0
	b, err := io.ReadAll(c)
	return c, string(b), err
}

const (
	get  = "GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n"
	post = "POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello"
	chnk = "POST /c HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0a\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"
)

func TestStreamPassesUntouched(t *testing.T) {
	stream := get + post + chnk + get
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			c, got, err := drain(t, r)
			if err != nil || got != stream {
				t.Fatalf("got %q, %v", got, err)
			}
			for _, path := range []string{"/a", "/b", "/c", "/a"} {
				if r, ok := c.Next(); !ok || r.Path != path || r.Err != nil {
					t.Errorf("facts %+v %v, want path %s", r, ok, path)
				}
			}
			if _, ok := c.Next(); ok {
				t.Error("more facts than requests")
			}
		})
	}
}

// A request line is parsed once, however slowly the rest of its head arrives.
func TestSlowHeadIsParsedOnce(t *testing.T) {
	head := "GET /" + strings.Repeat("x", 500) + " HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n"
	allocs := testing.AllocsPerRun(3, func() {
		if _, got, err := drain(t, iotest.OneByteReader(strings.NewReader(head))); got != head {
			t.Fatal(err)
		}
	})
	if allocs > 100 {
		t.Errorf("%.0f allocations for a head of %d bytes", allocs, len(head))
	}
}

// A refused head is replaced by a stand-in, and nothing that follows it passes.
func TestRefusedHeadNeverPasses(t *testing.T) {
	for _, bad := range []string{
		"GET /secret HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /secret HTTP/1.1\nHost: a\n\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x02\x00secret",
		strings.Repeat("A", 100),
		"GET /secret HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 10000),
		"\r\n\r\n\r\nGET /secret HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		c, got, err := drain(t, strings.NewReader(get+bad+get))
		if err != nil {
			t.Errorf("%.30q: %v", bad, err)
		}
		if want := get + "GET" + refusal; got != want {
			t.Errorf("%.30q: passed %q", bad, got)
		}
		if r, _ := c.Next(); r.Err != nil {
			t.Errorf("%.30q: the request before it was refused", bad)
		}
		if r, ok := c.Next(); !ok || r.Err == nil {
			t.Errorf("%.30q: no refusal in the facts", bad)
		}
	}
}

func TestOneEmptyLineIsSkipped(t *testing.T) {
	_, got, err := drain(t, iotest.OneByteReader(strings.NewReader("\r\n"+get+"\r\n"+get)))
	if err != nil || got != get+get {
		t.Errorf("got %q, %v", got, err)
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
		{"longer than it says", "5\r\nhelloX\r\n", "5\r\nhello"},
		{"LF behind the data", "5\r\nhello\n", "5\r\nhello"},
		{"trailer that frames", "0\r\nContent-Length: 3\r\n\r\n", "0\r\n"},
		{"trailer Host", "0\r\nHost: b\r\n\r\n", "0\r\n"},
		{"folded trailer", "0\r\nX: a\r\n b\r\n\r\n", "0\r\nX: a\r\n"},
		{"LF in trailers", "0\r\nX: a\n\r\n", "0\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, got, err := drain(t, strings.NewReader(head+tt.body+get))
			var bad *Error
			if !errors.As(err, &bad) || c.BodyErr() == nil {
				t.Fatalf("got %q, %v", got, err)
			}
			if got != head+tt.passed {
				t.Errorf("passed %q, want %q", got[len(head):], tt.passed)
			}
		})
	}
}

func TestManyExtensionsAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	for range 200 {
		b.WriteString("1;" + strings.Repeat("e", 200) + "\r\nx\r\n")
	}
	if _, _, err := drain(t, strings.NewReader(b.String())); err == nil {
		t.Error("40 KB of extensions passed")
	}
}

func TestUpgradeMakesItTransparent(t *testing.T) {
	const head = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	raw := "\x81\x00\r\n\r\nnot http"
	c := NewConn(&memConn{r: strings.NewReader(head + raw)})
	got := make([]byte, len(head))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != head {
		t.Fatalf("head %q, %v", got, err)
	}
	one := make([]byte, 1) // net/http looks for the end of the client in this way
	if n, err := c.Read(one); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	c.Upgrade()
	rest, err := io.ReadAll(c)
	if err != nil || string(one)+string(rest) != raw {
		t.Errorf("got %q, %v", string(one)+string(rest), err)
	}
}

func TestRefusedUpgradeIsFramedAgain(t *testing.T) {
	const head = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	c := NewConn(&memConn{r: strings.NewReader(head + get + "BAD\r\n")})
	got := make([]byte, len(head)+1)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	c.Resume()
	rest, err := io.ReadAll(c)
	if want := get[1:] + "GET" + refusal; err != nil || string(rest) != want {
		t.Errorf("got %q, %v", rest, err)
	}
	for _, path := range []string{"/ws", "/a"} {
		if r, _ := c.Next(); r.Path != path {
			t.Errorf("facts %+v, want %s", r, path)
		}
	}
}

func TestSlowHeadIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		c.HeadTimeout = 3 * time.Second
		go func() { _, _ = client.Write([]byte("GET /slow HTTP/1.1\r\nHo")) }()
		start := time.Now()
		b, err := io.ReadAll(c)
		if err != nil || !strings.HasSuffix(string(b), refusal) {
			t.Fatalf("got %q, %v", b, err)
		}
		if r, _ := c.Next(); r.Err == nil || r.Err.Status != 408 {
			t.Errorf("facts %+v", r)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("refused after %v", d)
		}
		_ = client.Close()
		_ = c.Close()
	})
}

// The clock of a head must not end a wait of the server's own, nor survive it.
func TestHeadClockLeavesTheServersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		c := NewConn(server)
		c.HeadTimeout = 3 * time.Second
		go func() {
			for _, part := range []string{get[:5], get[5:]} {
				_, _ = client.Write([]byte(part))
				time.Sleep(2 * time.Second)
			}
			time.Sleep(time.Minute)
			_, _ = client.Write([]byte(get))
			_ = client.Close()
		}()
		b, err := io.ReadAll(c)
		if err != nil || string(b) != get+get {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// The end of the stream is news for the server once the request is served, its
// read is called back, the connection is aborted, or the grace is over.
func TestEndIsHeldWhileServing(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*Conn)
		want error
		took time.Duration
	}{
		"served":   {func(c *Conn) { c.Resume() }, io.EOF, time.Second},
		"aborted":  {func(c *Conn) { c.Abort() }, io.EOF, time.Second},
		"recalled": {func(c *Conn) { _ = c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded, time.Second},
		"nothing":  {func(*Conn) {}, io.EOF, DefaultEndGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := NewConn(&memConn{r: strings.NewReader(get)})
				if _, err := io.ReadFull(c, make([]byte, len(get))); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				go func() { time.Sleep(time.Second); tt.do(c) }()
				_, err := c.Read(make([]byte, 1))
				if !errors.Is(err, tt.want) || time.Since(start) != tt.took {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestAbortedReadGoesOnLater(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	c := NewConn(server)
	_ = c.SetReadDeadline(time.Unix(1, 0))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Fatal("an aborted read succeeded")
	}
	_ = c.SetReadDeadline(time.Time{})
	go func() { _, _ = client.Write([]byte(get)) }()
	got := make([]byte, len(get))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != get {
		t.Errorf("got %q, %v", got, err)
	}
}

// FuzzStream feeds any stream and takes net/http as the oracle: whatever the
// gate passes, net/http reads as the same requests.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		get, post, chnk, get + post + chnk, "\r\n" + get, "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, slowly bool) {
		var r io.Reader = bytes.NewReader(in)
		if slowly {
			r = iotest.OneByteReader(r)
		}
		c, out, err := drain(t, r)
		refused := strings.HasSuffix(out, refusal)
		if !refused && !isSubsequenceOfLines(in, []byte(out)) {
			t.Fatalf("passed bytes that the client did not send: %q of %q", out, in)
		}
		br := bufio.NewReader(strings.NewReader(out))
		for {
			facts, ok := c.Next()
			if !ok {
				break
			}
			if facts.Err != nil {
				return
			}
			if facts.Method == "CONNECT" || facts.Upgrade {
				return
			}
			req, rerr := http.ReadRequest(br)
			if rerr != nil || facts.HasHost && !httpguts.ValidHostHeader(facts.Host) {
				t.Fatalf("net/http refuses a head that the gate passes: %v in %q", rerr, in)
			}
			if req.Method != facts.Method || req.RequestURI != facts.Target {
				t.Fatalf("net/http reads %s %s, the gate %s %s", req.Method, req.RequestURI, facts.Method, facts.Target)
			}
			if facts.Form != FormAbsolute && req.Host != facts.Host {
				t.Fatalf("net/http reads host %q, the gate %q", req.Host, facts.Host)
			}
			if _, berr := io.Copy(io.Discard, req.Body); berr != nil && err == nil && c.body.phase == done {
				t.Fatalf("net/http refuses a body that the gate passes: %v in %q", berr, in)
			}
		}
	})
}

// isSubsequenceOfLines reports whether out is in with at most some empty lines
// left out and the end cut off.
func isSubsequenceOfLines(in, out []byte) bool {
	for len(out) > 0 {
		switch {
		case len(in) > 0 && in[0] == out[0]:
			in, out = in[1:], out[1:]
		case bytes.HasPrefix(in, []byte("\r\n")):
			in = in[2:]
		default:
			return false
		}
	}
	return true
}
