package inbound

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"egressd/proxy/internal/http1"
	"egressd/proxy/internal/pool"
)

// talk has handle serve what a client sends, and reports all that it is answered.
func talk(t *testing.T, sent string, handle func(w *Writer, r *http.Request, facts http1.Request)) string {
	t.Helper()
	client, server := tcpPair(t)
	go func() {
		c := Conn{Wire: http1.NewConn(server), Handle: handle, First: time.Minute, Idle: time.Minute, Buffers: new(pool.Buffers)}
		c.Serve(context.Background())
	}()
	if _, err := io.WriteString(client, sent); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(client)
	if err != nil {
		t.Fatalf("%v behind %q", err, got)
	}
	return string(got)
}

func tcpPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Close() })
	return client, server
}

// answer writes content under a header without a Date, so that tests can compare.
func answer(w *Writer, status int, content string, fields ...string) {
	w.Header()["Date"] = nil
	for i := 0; i < len(fields); i += 2 {
		w.Header().Add(fields[i], fields[i+1])
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, content)
}

func TestFraming(t *testing.T) {
	const long = 10000
	tests := map[string]struct {
		request string
		handle  func(w *Writer, r *http.Request)
		want    string
	}{
		"a stated length": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "ok", "Content-Length", "2", "X", "1", "X", "2") },
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: 1\r\nX: 2\r\n\r\nok",
		},
		"no length": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 599, strings.Repeat("x", long)) },
			"HTTP/1.1 599 status code 599\r\nTransfer-Encoding: chunked\r\n\r\n2710\r\n" + strings.Repeat("x", long) + "\r\n0\r\n\r\n",
		},
		"trailers": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) {
				answer(w, 200, "x", "Trailer", "Sum")
				w.Header().Set("Sum", "1")
				w.Header().Set(http.TrailerPrefix+"Late", "2")
			},
			"HTTP/1.1 200 OK\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nLate: 2\r\nSum: 1\r\n\r\n",
		},
		"no content": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "") },
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		},
		"204": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 204, "x") },
			"HTTP/1.1 204 No Content\r\n\r\n",
		},
		"HEAD": {
			"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "ok", "Content-Length", "2") },
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
		},
		"1.0 without a length": {
			"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /never HTTP/1.0\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "ok") },
			"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
		},
		"1.0 kept alive": {
			"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "ok", "Content-Length", "2") },
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok" +
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
		},
		"the client's last": {
			"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "", "Content-Length", "0") },
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		},
		"a body that was not asked for": {
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\nGET /never HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) { answer(w, 200, "", "Content-Length", "0") },
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		},
		"1xx": {
			"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
			func(w *Writer, _ *http.Request) {
				w.Header().Set("Link", "x")
				w.WriteHeader(103)
				clear(w.Header())
				answer(w, 200, "")
			},
			"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := talk(t, tt.request, func(w *Writer, r *http.Request, facts http1.Request) {
				if facts.Path != "/" {
					t.Errorf("served %s", facts.Path)
				}
				tt.handle(w, r)
			})
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A value cannot add a field or a response, whoever wrote it.
func TestValuesCannotSplit(t *testing.T) {
	got := talk(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w *Writer, _ *http.Request, _ http1.Request) {
		w.SetPhrase("fine\r\nA: 1")
		answer(w, 200, "", "X", "1\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "Y: 1\r\nZ", "2", "Content-Length", "0")
	})
	if want := "HTTP/1.1 200 fine  A: 1\r\nContent-Length: 0\r\nX: 1    HTTP/1.1 200 OK    \r\n\r\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A response that is not whole must not look as if it were, nor let the next one
// be taken for its end.
func TestBrokenResponses(t *testing.T) {
	for name, handle := range map[string]func(w *Writer){
		"too short": func(w *Writer) { answer(w, 200, "a", "Content-Length", "2") },
		"aborted":   func(w *Writer) { answer(w, 200, "a"); w.Abort() },
		"too long":  func(w *Writer) { answer(w, 200, "abc", "Content-Length", "2") },
	} {
		t.Run(name, func(t *testing.T) {
			request := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
			got := talk(t, request+request, func(w *Writer, _ *http.Request, _ http1.Request) { handle(w) })
			if strings.Count(got, "HTTP/1.1") != 1 {
				t.Errorf("another response behind it: %q", got)
			}
			resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("%q looks whole: %q", got, b)
			}
		})
	}
}

// What a handler leaves of a body is not the next request, and neither is a body
// that its client was never asked for.
func TestBodiesThatNobodyReads(t *testing.T) {
	const inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n"
	const next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
	post := "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n"
	for name, tt := range map[string]struct {
		sent, want string
	}{
		"length":        {post + "\r\n" + inner + next, "POST/ GET/next"},
		"chunked":       {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n" + inner + "\r\n0\r\n\r\n" + next, "POST/ GET/next"},
		"never invited": {post + "Expect: 100-continue\r\n\r\n" + next, "POST/"},
		"malformed":     {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\n" + next, "POST/"},
		"too long":      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400000\r\n\r\n" + strings.Repeat(" ", 400000) + next, "POST/"},
	} {
		t.Run(name, func(t *testing.T) {
			var served []string
			over := make(chan struct{})
			client, server := tcpPair(t)
			go func() {
				defer close(over)
				c := Conn{Wire: http1.NewConn(server), First: time.Minute, Idle: time.Minute, Buffers: new(pool.Buffers)}
				c.Handle = func(w *Writer, _ *http.Request, facts http1.Request) {
					served = append(served, facts.Method+facts.Path)
					answer(w, 200, "", "Content-Length", "0")
				}
				c.Serve(context.Background())
			}()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			_, _ = io.WriteString(client, tt.sent) // the Conn may close before all of it is sent
			_ = client.(*net.TCPConn).CloseWrite()
			<-over
			if got := strings.Join(served, " "); got != tt.want {
				t.Errorf("served %s, want %s", got, tt.want)
			}
		})
	}
}

// A writer that is used when its response is over reaches nobody.
func TestLateWrites(t *testing.T) {
	var late *Writer
	got := talk(t, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n", func(w *Writer, _ *http.Request, facts http1.Request) {
		if facts.Path == "/1" {
			late = w
		} else {
			_, _ = io.WriteString(late, "late")
			late.WriteHeader(103)
			late.Flush()
		}
		answer(w, 200, "", "Content-Length", "0")
	})
	if want := strings.Repeat("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 2); got != want {
		t.Errorf("got %q", got)
	}
}

// A panic goes on to the caller, and the client sees no whole response.
func TestPanic(t *testing.T) {
	client, server := tcpPair(t)
	c := Conn{Wire: http1.NewConn(server), First: time.Minute, Buffers: new(pool.Buffers)}
	c.Handle = func(w *Writer, _ *http.Request, _ http1.Request) {
		answer(w, 200, "a", "Content-Length", "1")
		panic("bug")
	}
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the panic was swallowed")
		}
		if b, _ := io.ReadAll(client); len(b) > 0 {
			t.Errorf("the client got %q", b)
		}
	}()
	c.Serve(context.Background())
}

// The client's end is the end of the request's context.
func TestClientGone(t *testing.T) {
	client, server := tcpPair(t)
	c := Conn{Wire: http1.NewConn(server), First: time.Minute, Buffers: new(pool.Buffers)}
	c.Handle = func(w *Writer, r *http.Request, _ http1.Request) {
		_ = client.(*net.TCPConn).SetLinger(0)
		_ = client.Close()
		<-r.Context().Done()
		w.Abort()
	}
	if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	c.Serve(context.Background())
}
