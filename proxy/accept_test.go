package proxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// fullListener fails with EMFILE, then gives conns, then fails for good.
type fullListener struct {
	net.Listener
	errs atomic.Int64
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.errs.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestAcceptSurvivesEMFILE runs out of descriptors for a while.
func TestAcceptSurvivesEMFILE(t *testing.T) {
	g := newGate(t)
	ln := &fullListener{Listener: listenLocal(t)}
	ln.errs.Store(3)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := g.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	})
	g.explicitAddr = ln.Addr().String()
	if _, err := openConnect(g, "a.example", 443); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 403") {
		t.Errorf("%v", err)
	}
	cancel()
	wg.Wait()
	closed := listenLocal(t)
	closed.Close()
	if err := g.Serve(context.Background(), closed); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a dead listener: %v", err)
	}
}
