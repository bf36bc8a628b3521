package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// state is a readiness that tests change.
type state struct{ reason atomic.Value }

func (s *state) ready() error {
	if r, _ := s.reason.Load().(string); r != "" {
		return errors.New(r)
	}
	return nil
}

// serve runs s on a TCP port and on a socket file until the test ends, and
// reports their addresses as --admin spells them.
func serve(t *testing.T, s *Server) (tcp, local string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var lc net.ListenConfig
	path := filepath.Join(t.TempDir(), "admin.sock")
	onTCP, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	onUnix, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, ln := range []net.Listener{onTCP, onUnix} {
		go func() { done <- s.Serve(ctx, ln) }()
	}
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("the socket file is left behind")
		}
	})
	return onTCP.Addr().String(), "unix:" + path
}

// ask sends one request and reads the answer's code, header and body.
func ask(t *testing.T, addr, request string) (code int, h http.Header, body string) {
	t.Helper()
	conn := dial(t, addr)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	network, address, err := ParseAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func get(path, host string) string { return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }

func TestPages(t *testing.T) {
	var st state
	s := &Server{Ready: st.ready, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 1\n") })}
	tcp, local := serve(t, s)
	for _, addr := range []string{tcp, local} {
		st.reason.Store("")
		for _, tt := range []struct {
			request string
			code    int
			body    string
		}{
			{get("/", "localhost"), 200, index},
			{get("/healthz", "localhost"), 200, "ok\n"},
			{get("/healthz?x=1", "localhost"), 200, "ok\n"},
			{get("/readyz", "localhost"), 200, "ready\n"},
			{get("/metrics", "localhost"), 200, "metric 1\n"},
			{get("/healthz/", "localhost"), 404, "no such page: see /\n"},
			{get("/debug/pprof/", "localhost"), 404, "no such page: see /\n"},
			{get("/../healthz", "localhost"), 404, "no such page: see /\n"},
			{"HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, ""},
			{"POST /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405, "GET and HEAD only\n"},
			{"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "GET and HEAD only\n"},
			{"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 405, "GET and HEAD only\n"},
			{"GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, ""}, // no proxy: see below
		} {
			code, h, body := ask(t, addr, tt.request)
			if tt.code == 0 { // the Host is that of the URL
				if addr == tcp && code != http.StatusMisdirectedRequest {
					t.Errorf("%s: %q: %d", addr, tt.request, code)
				}
				continue
			}
			if code != tt.code || body != tt.body {
				t.Errorf("%s: %q: %d %q, want %d %q", addr, tt.request, code, body, tt.code, tt.body)
			}
			if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %q: header %v", addr, tt.request, h)
			}
		}
		st.reason.Store("draining\r\nX-Evil: 1\x1b[31m")
		code, h, body := ask(t, addr, get("/readyz", "localhost"))
		if code != 503 || body != "not ready: draining  X-Evil: 1 [31m\n" || h.Get("X-Evil") != "" {
			t.Errorf("%d %q %v", code, body, h)
		}
		if code, _, _ := ask(t, addr, get("/healthz", "localhost")); code != 200 {
			t.Errorf("a daemon that is not ready is not alive: %d", code)
		}
	}
}

// The zero Server is alive, not ready, and shows nothing.
func TestZeroServer(t *testing.T) {
	tcp, _ := serve(t, new(Server))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 404} {
		if code, _, _ := ask(t, tcp, get(path, "localhost")); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestHost(t *testing.T) {
	tcp, local := serve(t, new(Server))
	for host, want := range map[string]bool{
		"127.0.0.1:3131": true, "10.1.2.3": true, "[::1]:3131": true, "[::1]": true, "localhost": true, "LOCALHOST:3131": true, "localhost.": true,
		"egressd:3131": true, "x.localhost": true,
		"egressd.agents.svc": true, "egressd.agents.svc.cluster.local:3131": true, "host.internal": true,
		"evil.example.com": false, "evil.example.com:3131": false, "127.0.0.1.evil.example.com": false, "localhost.evil.example.com": false,
		"gate.example.com": false, "gate.internal.evil.example.com": false, "evillocal.example": false, "internal.example.com": false, "0x7f.1": false,
	} {
		code, _, _ := ask(t, tcp, get("/healthz", host))
		if got := code == 200; got != want || !want && code != http.StatusMisdirectedRequest {
			t.Errorf("Host %s: %d, want allowed %v", host, code, want)
		}
		if code, _, _ := ask(t, local, get("/healthz", host)); code != 200 {
			t.Errorf("Host %s on a socket file, which no page reaches: %d", host, code)
		}
	}
	if code, _, _ := ask(t, tcp, "GET /healthz HTTP/1.0\r\n\r\n"); code != http.StatusMisdirectedRequest {
		t.Errorf("no Host: %d", code)
	}
}

// What listens for a network is asked by the names of that network.
func TestHostOfNetwork(t *testing.T) {
	for local, want := range map[string]int{"127.0.0.1": http.StatusMisdirectedRequest, "::1": http.StatusMisdirectedRequest, "192.0.2.1": 200, "": http.StatusMisdirectedRequest} {
		r := httptest.NewRequest("GET", "http://gate.example.net:3131/healthz", nil)
		if ip := net.ParseIP(local); ip != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 3131}))
		}
		w := httptest.NewRecorder()
		new(Server).handler(false).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("on %q: %d, want %d", local, w.Code, want)
		}
	}
}

func TestBounds(t *testing.T) {
	tcp, _ := serve(t, new(Server))
	big := dial(t, tcp)
	defer big.Close()
	_, _ = io.WriteString(big, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", maxHeadBytes+8<<10)+"\r\n\r\n")
	// The answer, or a reset since nobody reads the rest.
	if answer, _ := io.ReadAll(big); len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 431 ") {
		t.Errorf("a head of any size is read: %q", answer)
	}
}

// Who says nothing, or half of something, or does not take an answer, holds no
// probe up.
func TestSilentConnections(t *testing.T) {
	entered := make(chan struct{}, 2*maxConnections)
	tcp, local := serve(t, &Server{Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	})})
	tests := []struct {
		name, says string
		stuck      bool // in the answer
	}{
		{"nothing", "", false},
		{"half a head", "GET /healthz HTTP/1.1\r\nHo", false},
		{"an answer that takes its time", get("/metrics", "localhost"), true},
	}
	for _, addr := range []string{tcp, local} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				first := dial(t, addr)
				defer first.Close()
				_, _ = io.WriteString(first, tt.says)
				if tt.stuck {
					<-entered
				}
				for range 3 * maxConnections {
					c := dial(t, addr)
					defer c.Close()
					_, _ = io.WriteString(c, tt.says)
					if tt.stuck {
						<-entered
					}
				}
				start := time.Now()
				if code, _, _ := ask(t, addr, get("/healthz", "localhost")); code != http.StatusOK {
					t.Errorf("%d", code)
				}
				if took := time.Since(start); took > headTimeout/2 {
					t.Errorf("a probe was held up for %v", took)
				}
				if _, err := first.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
					t.Errorf("the oldest connection made no room: %v", err)
				}
			})
		}
	}
}

// Serve ends although an answer is stuck.
func TestServeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	s := &Server{Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	conn := dial(t, ln.Addr().String())
	defer conn.Close()
	if _, err := io.WriteString(conn, get("/metrics", "localhost")); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
	// A listener that breaks is told.
	ln2, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln2.Close()
	if err := s.Serve(t.Context(), ln2); err == nil {
		t.Error("a closed listener is no error")
	}
}

func TestCheck(t *testing.T) {
	var st state
	tcp, local := serve(t, &Server{Ready: st.ready})
	_, port, _ := net.SplitHostPort(tcp)
	for _, addr := range []string{tcp, local, "localhost:" + port, ":" + port, "0.0.0.0:" + port} {
		st.reason.Store("")
		if err := Check(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		st.reason.Store("the policy did not load")
		if err := Check(t.Context(), addr); err == nil || err.Error() != "not ready: the policy did not load" {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestCheckErrors(t *testing.T) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	_ = ln.Close()

	mute, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()

	odd := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
	noisy := answering(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	away := answering(t, "HTTP/1.1 302 Found\r\nLocation: http://"+closed+"/readyz\r\nContent-Length: 0\r\n\r\n")
	escape := answering(t, "HTTP/1.1 503 x\r\nContent-Length: 9\r\n\r\na\x1b[2J\nb\nc")
	junk := answering(t, "SSH-2.0-x\r\n")
	for _, tt := range []struct{ addr, want string }{
		{closed, "is egressd running"},
		{"unix:" + filepath.Join(t.TempDir(), "none"), "is egressd running"},
		{mute.Addr().String(), "did not answer in time"},
		{odd, "is that egressd's admin address?"},
		{away, "is that egressd's admin address?"},
		{noisy, noisy},
		{escape, "a [2J"},
		{junk, junk},
		{"", "admin address"},
		{"127.0.0.1:0", "port 0"},
		{"example.com:3131", "not an address"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := Check(ctx, tt.addr)
		cancel()
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: %q, want %q in one line", tt.addr, err, tt.want)
		}
	}
}

// answering is a server that says text to everybody.
func answering(t *testing.T, text string) string {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			_, _ = c.Read(buf)
			_, _ = io.WriteString(c, text)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}

func TestParseAddr(t *testing.T) {
	for _, tt := range []struct{ in, network, address, err string }{
		{"127.0.0.1:3131", "tcp", "127.0.0.1:3131", ""},
		{"[::1]:3131", "tcp", "[::1]:3131", ""},
		{":3131", "tcp", ":3131", ""},
		{"localhost:0", "tcp", "localhost:0", ""},
		{"unix:/run/egressd/admin.sock", "unix", "/run/egressd/admin.sock", ""},
		{"unix:admin.sock", "", "", "absolute path"},
		{"unix:", "", "", "absolute path"},
		{"unix:/" + strings.Repeat("x", 200), "", "", "at most"},
		{"unix:/a\x00b", "", "", "absolute path"},
		{"/run/admin.sock", "", "", "write unix:/run/admin.sock"},
		{"3131", "", "", "HOST:PORT or unix:PATH"},
		{"127.0.0.1", "", "", "HOST:PORT or unix:PATH"},
		{"127.0.0.1:http", "", "", "not a port"},
		{"127.0.0.1:03131", "", "", "not a port"},
		{"127.0.0.1:65536", "", "", "not a port"},
		{"127.1:3131", "", "", "not an address"},
		{"", "", "", "HOST:PORT or unix:PATH"},
	} {
		network, address, err := ParseAddr(tt.in)
		if network != tt.network || address != tt.address || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseAddr(%q) = %q, %q, %v; want %q, %q, %q", tt.in, network, address, err, tt.network, tt.address, tt.err)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"127.0.0.1:3131", "unix:/x", "[::1%lo]:1", "::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		network, address, err := ParseAddr(s)
		if err != nil {
			return
		}
		if _, err := dialAddr(network, address); err != nil && !strings.Contains(fmt.Sprint(err), "port 0") {
			t.Fatalf("%q is accepted and can't be dialled: %v", s, err)
		}
	})
}
