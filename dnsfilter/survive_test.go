package dnsfilter

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"egressd/event"
	"egressd/policy"
)

// A query or an answer that meets a bug costs itself and nobody else.
func TestPanicCostsOneQuery(t *testing.T) {
	var log strings.Builder
	bad := func(ctx context.Context, _ Upstream, q *dns.Msg) (*dns.Msg, error) {
		if q.Question[0].Name == "bad.test." {
			panic("the parser has a bug")
		}
		return zone("good.test. 60 IN A 93.184.216.34")("udp", q), nil
	}
	up, err := ParseUpstream("192.0.2.53")
	if err != nil {
		t.Fatal(err)
	}
	r := &Resolver{Upstreams: []Upstream{up}, Log: slog.New(slog.NewTextHandler(&log, nil)), ask: bad}
	g := start(t, &Server{Policy: compile(t, "forward", "good.test", "bad.test"), Resolver: r})
	for _, network := range []string{"udp", "tcp"} {
		for name, want := range map[string]int{"bad.test.": dns.RcodeServerFailure, "good.test.": dns.RcodeSuccess} {
			m := new(dns.Msg)
			m.SetQuestion(name, dns.TypeA)
			if in := g.ask(t, network, m); in.Rcode != want {
				t.Errorf("%s over %s: %v", name, network, in)
			}
		}
	}
	g.cancel()
	<-g.done
	g.done <- nil // for the end of the test
	if !strings.Contains(log.String(), "the parser has a bug") || !strings.Contains(log.String(), "askFamily") {
		t.Errorf("the log lacks the bug or its stack: %s", &log)
	}
}

// panicOnce panics at the first event.
type panicOnce struct {
	recorder
	done atomic.Bool
}

func (p *panicOnce) Emit(e event.Event) error {
	if p.done.CompareAndSwap(false, true) {
		panic("the sink has a bug")
	}
	return p.recorder.Emit(e)
}

func TestPanicInAnswerIsRecorded(t *testing.T) {
	var log strings.Builder
	sink := new(panicOnce)
	s := &Server{Policy: compile(t, "", "a.test"), Events: sink, Log: slog.New(slog.NewTextHandler(&log, nil))}
	var m dns.Msg
	if err := m.Unpack(s.answerRecovering(t.Context(), wire(t, nil), netip.MustParseAddrPort("192.0.2.1:5"), false)); err != nil || m.Rcode != dns.RcodeServerFailure {
		t.Errorf("%v, %v", &m, err)
	}
	if e := sink.one(t); e.Decision != "blocked" || e.Reason != policy.ReasonInternal.String() || e.Client != "192.0.2.1:5" {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(log.String(), "the sink has a bug") {
		t.Errorf("the log lacks the bug: %s", &log)
	}
}

// A filter that is out of descriptors waits for them, however long.
func TestPassingErrorsAreWaitedOut(t *testing.T) {
	r := &running{answerer: new(Server), failed: make(chan error, 2)}
	emfile := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	ctx, cancel := context.WithCancel(t.Context())
	for name, tt := range map[string]struct {
		n    int
		err  error
		want bool
	}{
		"out of descriptors": {maxAcceptErr + 1, emfile, true},
		"once":               {1, errors.New("odd"), true},
		"again and again":    {maxAcceptErr + 1, errors.New("odd"), false},
		"closed":             {1, net.ErrClosed, false},
	} {
		if got := r.pause(ctx, "tcp", tt.n, tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	cancel()
	if r.pause(ctx, "tcp", 1, emfile) {
		t.Error("it goes on after its end")
	}
}
