package proxy

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// Each event arrives before the origin sends the next: it waits for the word
// that the last one has.
func TestHTTPStreamsArriveAsSent(t *testing.T) {
	for _, typ := range []string{"text/event-stream", "application/x-ndjson", ""} {
		t.Run(typ, func(t *testing.T) {
			ack := make(chan struct{})
			o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = nil
				if typ != "" {
					w.Header().Set("Content-Type", typ)
				}
				for i := range 5 {
					fmt.Fprintf(w, "data: %d\n", i)
					_ = http.NewResponseController(w).Flush()
					select {
					case <-ack:
					case <-r.Context().Done():
						return
					}
				}
			})
			g := newWebGate(t, o.addr, "origin.test")
			resp, err := g.client().Get("http://origin.test/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			r := bufio.NewReader(resp.Body)
			for i := range 5 {
				line, err := r.ReadString('\n')
				if err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("event %d: %q, %v", i, line, err)
				}
				ack <- struct{}{}
			}
			if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
				t.Errorf("end: %q, %v", rest, err)
			}
		})
	}
}

// A slow download of known length arrives as it is sent, too.
func TestHTTPKnownLengthIsNotHeldBack(t *testing.T) {
	ack := make(chan struct{})
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "6")
		_ = http.NewResponseController(w).Flush()
		<-ack // the head is there
		for range 3 {
			_, _ = io.WriteString(w, "ab")
			_ = http.NewResponseController(w).Flush()
			<-ack
		}
	})
	g := newWebGate(t, o.addr, "origin.test")
	resp, err := g.client().Get("http://origin.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ack <- struct{}{}
	for range 3 {
		if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		ack <- struct{}{}
	}
}

// Both directions at once, as in a streaming call.
func TestHTTPFullDuplex(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		_ = rc.Flush()
		br := bufio.NewReader(r.Body)
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, "echo "+line)
			_ = rc.Flush()
		}
	})
	g := newWebGate(t, o.addr, "origin.test")
	pr, pw := io.Pipe()
	req, _ := http.NewRequest("POST", "http://origin.test/", pr)
	resp, err := g.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for i := range 3 {
		fmt.Fprintf(pw, "%d\n", i)
		if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("echo %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
	}
	_ = pw.Close()
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
}

func TestHTTPTrailersBothWays(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
		w.Header().Set("X-Sum", r.Trailer.Get("X-Announced")+"/"+r.Trailer.Get("X-Not"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	for range 2 {
		c.send("POST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nTE: trailers\r\nTrailer: X-Announced\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\nhello\r\n0\r\nX-Announced: yes\r\nX-Not: too\r\n\r\n")
		resp, body := c.response("POST")
		equal(t, "body", body, "hello")
		equal(t, "announced trailer", resp.Trailer.Get("X-Sum"), "yes/too")
		equal(t, "late trailer", resp.Trailer.Get("X-Late"), "late")
	}
}

func TestHTTPUnannouncedTrailerAlone(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Trailer.Get("X-Not"))
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("POST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Not: too\r\n\r\n")
	_, body := c.response("POST")
	equal(t, "trailer at the origin", body, "too")
}

func TestHTTPExpectContinue(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(w, r.Body) // sends 100
	})
	g := newWebGate(t, o.addr, "origin.test")
	t.Run("wanted", func(t *testing.T) {
		c := g.dial()
		c.send("POST http://origin.test/yes HTTP/1.1\r\nHost: origin.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		if h := rawHead(t, c.r); !strings.HasPrefix(h, "HTTP/1.1 100 ") {
			t.Fatalf("got %q", h)
		}
		c.send("body")
		resp, body := c.response("POST")
		equal(t, "status", resp.StatusCode, 200)
		equal(t, "body", body, "body")
	})
	t.Run("unwanted", func(t *testing.T) {
		c := g.dial()
		c.send("POST http://origin.test/no HTTP/1.1\r\nHost: origin.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		resp, _ := c.response("POST")
		equal(t, "status", resp.StatusCode, 417)
	})
	t.Run("denied", func(t *testing.T) {
		c := g.dial()
		c.send("POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		resp, _ := c.response("POST")
		equal(t, "status", resp.StatusCode, 403)
	})
}

func TestHTTPEarlyHints(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		fmt.Fprint(w, "done")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	if h := rawHead(t, c.r); !strings.HasPrefix(h, "HTTP/1.1 103 ") || !strings.Contains(h, "Link: </a.css>") {
		t.Fatalf("got %q", h)
	}
	resp, body := c.response("GET")
	equal(t, "body", body, "done")
	equal(t, "link in the final head", resp.Header.Get("Link"), "")
	c.send("GET http://origin.test/ HTTP/1.0\r\nHost: origin.test\r\n\r\n")
	resp, _ = c.response("GET")
	equal(t, "an HTTP/1.0 client gets no 1xx", resp.StatusCode, 200)
}

func TestHTTPBodiless(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.Header().Set("Etag", `"x"`)
			w.WriteHeader(304)
		default:
			w.Header().Set("Content-Length", "12345")
		}
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	for range 2 {
		for _, tt := range []struct {
			method, path string
			status       int
			length       int64
		}{{"GET", "/204", 204, 0}, {"GET", "/304", 304, 0}, {"HEAD", "/head", 200, 12345}} {
			c.send(tt.method + " http://origin.test" + tt.path + " HTTP/1.1\r\nHost: origin.test\r\n\r\n")
			resp, _ := c.response(tt.method)
			equal(t, tt.path+" status", resp.StatusCode, tt.status)
			equal(t, tt.path+" length", max(resp.ContentLength, 0), tt.length)
		}
	}
}

func TestHTTP10Client(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush() // chunked upstream
		fmt.Fprint(w, r.Proto, " ", r.Host)
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/ HTTP/1.0\r\n\r\n")
	b, err := io.ReadAll(c.r)
	if err != nil || !strings.HasSuffix(string(b), "\r\n\r\nHTTP/1.1 origin.test") {
		t.Errorf("got %q, %v", b, err)
	}
}

// 64 MiB each way, in memory that does not grow with them.
func TestHTTPLargeBodies(t *testing.T) {
	const size = 64 << 20
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		if n > 0 {
			fmt.Fprintf(w, "%d %x", n, h.Sum(nil))
			return
		}
		_, _ = io.CopyN(w, new(pattern), size)
	})
	g := newWebGate(t, o.addr, "origin.test")
	want := sha256.New()
	_, _ = io.CopyN(want, new(pattern), size)
	c := g.client()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	resp, err := c.Get("http://origin.test/")
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	_, err = io.Copy(got, resp.Body)
	_ = resp.Body.Close()
	if err != nil || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Fatalf("download differs: %v", err)
	}
	resp, err = c.Post("http://origin.test/", "", io.LimitReader(new(pattern), size))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	equal(t, "upload", string(b), fmt.Sprintf("%d %x", size, want.Sum(nil)))

	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 16<<20 {
		t.Errorf("%d bytes allocated for 2 x %d", grown, size)
	}
}

// pattern is an endless, position-dependent stream.
type pattern struct{ n byte }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = p.n
		p.n = p.n*5 + 1
	}
	return len(b), nil
}

func TestHTTPClientGoneCancelsUpstream(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	<-begun
	_ = c.Close()
	<-gone
}

// A client may end its sending half and wait for the response.
func TestHTTPHalfCloseBehindARequest(t *testing.T) {
	closed := make(chan struct{})
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		<-closed
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "got %s", b)
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\nPOST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 4\r\n\r\nbody")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	close(closed)
	for _, want := range []string{"got ", "got body"} {
		resp, body := c.response("GET")
		equal(t, "status", resp.StatusCode, 200)
		equal(t, "body", body, want)
	}
	if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil {
		t.Errorf("end: %q, %v", rest, err)
	}
}

func TestHTTPEarlyResponse(t *testing.T) {
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		rawHead(t, r)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!")
		_, _ = io.CopyN(io.Discard, r, 1<<20)
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("POST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 1000000\r\n\r\nbegin")
	resp, body := c.response("POST")
	equal(t, "status", resp.StatusCode, 413)
	equal(t, "body", body, "no!")
}
