package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
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
