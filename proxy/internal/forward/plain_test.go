package forward

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestPlainHead says what an origin gets.
func TestPlainHead(t *testing.T) {
	got := make(chan string, 1)
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		got <- head(br)
		_, _ = io.WriteString(c, fine)
	})
	if _, _, err := r.fetch("GET /a HTTP/1.1\r\nHost: x\r\nX-Two: 1\r\nConnection: X-Gone\r\nX-Gone: 1\r\nProxy-Connection: x\r\nAccept: b\r\nX-Two: 2\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if h, want := <-got, "GET /a HTTP/1.1\r\nHost: origin.test\r\nAccept: b\r\nX-Two: 1\r\nX-Two: 2\r\n\r\n"; h != want {
		t.Errorf("%q, want %q", h, want)
	}
}

// TestPlainUploads says how content is framed.
func TestPlainUploads(t *testing.T) {
	got := make(chan string, 1)
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		h := head(br)
		if strings.Contains(h, "chunked") {
			for !strings.HasSuffix(h, "\r\n0\r\nX-Sum: 9\r\n\r\n") && len(h) < 1000 {
				h += head(br)
			}
		} else {
			b := make([]byte, 4)
			_, _ = io.ReadFull(br, b)
			h += string(b)
		}
		got <- h
		_, _ = io.WriteString(c, fine)
	})
	const first = "POST /a HTTP/1.1\r\nHost: origin.test\r\n"
	for _, framed := range []string{
		"Content-Length: 4\r\n\r\nbody",
		"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 9\r\n\r\n",
	} {
		if _, body, err := r.fetch(first + framed); err != nil || body != "ok" {
			t.Fatal(body, err)
		}
		if h := <-got; h != first+framed {
			t.Errorf("%q, want %q", h, first+framed)
		}
		r.p.CloseIdle()
	}
}

// TestPlainDesync sends what two parsers read in two ways: none of it reaches
// the client, and the connection is not used again.
func TestPlainDesync(t *testing.T) {
	for name, response := range map[string]string{
		"length and encoding":    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 0\r\n\r\nok",
		"bare LF":                "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"folded":                 "HTTP/1.1 200 OK\r\nA: b\r\n Content-Length: 2\r\n\r\nok",
		"space before the colon": "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
		"a negative length":      "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"a 204 with content":     "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
		"switched unasked":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nok",
		"a flood of 1xx":         strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", maxInformational+1) + fine,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
				head(br)
				_, _ = io.WriteString(c, response)
				_, _ = io.Copy(io.Discard, br) // until the connection is closed
			})
			c, br := r.dial()
			_, _ = io.WriteString(c, get)
			h := head(br)
			for strings.HasPrefix(h, "HTTP/1.1 103 ") {
				h = head(br)
			}
			o := r.outcome()
			if want := name != "switched unasked" && name != "a flood of 1xx"; errors.Is(o.Failed, ErrMalformed) != want {
				t.Errorf("%v", o.Failed)
			}
			if o.Failed == nil || !strings.HasPrefix(h, "HTTP/1.1 502 ") {
				t.Errorf("%v, %q", o.Failed, h)
			}
			if r.p.kept.count() != 0 {
				t.Error("the connection is kept")
			}
		})
	}
}

// TestPlainCutShort breaks responses off: the client must not take them for whole.
func TestPlainCutShort(t *testing.T) {
	for name, response := range map[string]string{
		"length":        "Content-Length: 9\r\n\r\nok",
		"chunk":         "Transfer-Encoding: chunked\r\n\r\n9\r\nok",
		"last chunk":    "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"chunk too big": "Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n",
		"size":          "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n-1\r\n0\r\n\r\n",
		"trailer":       "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 2\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
				head(br)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+response)
			})
			if status, body, err := r.fetch(get); err == nil {
				t.Errorf("a whole response: %d %q", status, body)
			}
			if o := r.outcome(); o.Broken == nil {
				t.Error("not broken")
			}
		})
	}
}

// TestPlainPass asks before every request, also over a kept connection, and
// sends nothing when the answer is no.
func TestPlainPass(t *testing.T) {
	requests := make(chan string, 4)
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		for h := head(br); h != ""; h = head(br) {
			requests <- h
			_, _ = io.WriteString(c, fine)
		}
		close(requests)
	})
	for range 2 {
		if _, body, err := r.fetch(get); body != "ok" {
			t.Fatal(body, err)
		}
		r.outcome()
	}
	no := errors.New("no")
	r.gate.no.Store(&no)
	if status, _, _ := r.fetch(get); status != 502 {
		t.Error(status)
	}
	if o := r.outcome(); !errors.Is(o.Failed, no) || o.Sent != 0 {
		t.Errorf("%+v", o)
	}
	n := 0
	for range requests {
		n++
	}
	if n != 2 || r.gate.passes.Load() != 3 || r.conns.Load() != 1 {
		t.Errorf("%d requests, asked %d times, %d connections", n, r.gate.passes.Load(), r.conns.Load())
	}
}

// TestPlainOtherUpload has a gate put content of another length in the place of
// the client's: the origin gets no more than it was told of, and never a whole
// request.
func TestPlainOtherUpload(t *testing.T) {
	for other, want := range map[string]error{"bod": ErrShortUpload, "body!": errLongUpload} {
		rest := make(chan string, 1)
		r := newRig(t, func(_ int64, _ net.Conn, br *bufio.Reader) {
			head(br)
			b, _ := io.ReadAll(br)
			rest <- string(b)
		})
		r.gate.change = func(out *http.Request) { out.Body = io.NopCloser(strings.NewReader(other)) }
		status, _, err := r.fetch(post)
		if o := r.outcome(); status != 502 || !errors.Is(o.Failed, want) {
			t.Errorf("%q: %d, %v, %v", other, status, err, o.Failed)
		}
		if b := <-rest; len(b) >= 4 {
			t.Errorf("the origin got %q", b)
		}
	}
}

// TestPlainEarlyAnswer has the origin answer before it has all of the request:
// what is still to come must not be taken for the next one.
func TestPlainEarlyAnswer(t *testing.T) {
	r := newRig(t, func(_ int64, c net.Conn, br *bufio.Reader) {
		head(br)
		_, _ = io.WriteString(c, fine)
		_, _ = io.Copy(io.Discard, br)
	})
	c, br := r.dial()
	_, _ = io.WriteString(c, "POST /a HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 99\r\n\r\nbody")
	if h := head(br); !strings.HasPrefix(h, "HTTP/1.1 200 ") {
		t.Errorf("%q", h)
	}
	if o := r.outcome(); o.Failed != nil || o.Broken != nil {
		t.Errorf("%+v", o)
	}
	if r.p.kept.count() != 0 {
		t.Error("the connection is kept")
	}
}

// TestPlainShortUpload breaks a request off: the origin must not take it for whole.
func TestPlainShortUpload(t *testing.T) {
	for name, request := range map[string]string{
		"length":  "Content-Length: 9\r\n\r\nbody",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			rest := make(chan string, 1)
			r := newRig(t, func(_ int64, _ net.Conn, br *bufio.Reader) {
				head(br)
				b, _ := io.ReadAll(br)
				rest <- string(b)
			})
			c, _ := r.dial()
			_, _ = io.WriteString(c, "POST /a HTTP/1.1\r\nHost: origin.test\r\n"+request)
			_ = c.(*net.TCPConn).CloseWrite()
			if o := r.outcome(); o.Failed == nil {
				t.Error("not failed")
			}
			select {
			case b := <-rest:
				if strings.HasSuffix(b, "0\r\n\r\n") || len(b) >= 12 {
					t.Errorf("the origin got %q", b)
				}
			case <-time.After(patience):
				t.Error("the connection stays open")
			}
		})
	}
}
