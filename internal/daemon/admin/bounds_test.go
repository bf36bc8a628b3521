package admin

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

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
