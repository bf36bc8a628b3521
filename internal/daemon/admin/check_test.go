package admin

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
