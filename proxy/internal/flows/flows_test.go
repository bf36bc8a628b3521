package flows

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"egressd/policy"
)

// TestSweep ends flows at their limits in time, and no others.
func TestSweep(t *testing.T) {
	start := time.Now()
	limits := Limits{MaxDuration: time.Hour, Idle: time.Minute}
	for _, tt := range []struct {
		name  string
		watch bool // the flow counts bytes
		moves bool // and carries some before each sweep
		after time.Duration
		want  string // the limit; "": it goes on
	}{
		{"busy", true, true, 50 * time.Minute, ""},
		{"idle", true, false, 2 * time.Minute, "idle_timeout_seconds: 60"},
		{"watches itself", false, false, 50 * time.Minute, ""},
		{"busy for too long", true, true, 61 * time.Minute, "max_duration_seconds: 3600"},
		{"there for too long", false, false, 61 * time.Minute, "max_duration_seconds: 3600"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var set Set[string]
			var bytes atomic.Int64
			got := ""
			f := &Flow[string]{Stop: func(d policy.Decision, why string) {
				if got = why; d.Reason != policy.ReasonOverload {
					t.Error(d)
				}
			}}
			if tt.watch {
				f.Bytes = &bytes
			}
			set.Add(f, start)
			for at := time.Duration(0); at <= tt.after; at += 30 * time.Second {
				if tt.moves {
					bytes.Add(1)
				}
				set.Sweep(start.Add(at), limits)
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestSetCountsWhatIsThere(t *testing.T) {
	var set Set[int]
	seen, hidden := &Flow[int]{Owner: 1}, &Flow[int]{Owner: 2, Hidden: true}
	set.Add(seen, time.Now())
	set.Add(hidden, time.Now())
	if set.Len() != 1 || len(set.All()) != 2 {
		t.Errorf("%d of %d", set.Len(), len(set.All()))
	}
	set.Remove(seen)
	set.Remove(seen)
	if set.Len() != 0 || len(set.All()) != 1 {
		t.Errorf("%d of %d", set.Len(), len(set.All()))
	}
}

// TestBlind asks of each kind of flow whether a decision needs a check that came
// too late for it.
func TestBlind(t *testing.T) {
	tls, http := policy.Request{Wire: policy.WireTLS}, policy.Request{Wire: policy.WireHTTP}
	open := policy.Decision{Verdict: policy.Intercept}
	needsTLS := policy.Decision{Verdict: policy.Allow, Needs: policy.WireTLS}
	needsHTTP := policy.Decision{Verdict: policy.Allow, Needs: policy.WireHTTP}
	unseen := policy.Decision{Verdict: policy.Allow, Needs: policy.WireUnseen}
	for _, tt := range []struct {
		name string
		kind Kind
		d    policy.Decision
		r    policy.Request
		want bool
	}{
		{"a request is judged as before", Requests, open, tls, false},
		{"TLS that is to be opened", Tunnel, open, tls, true},
		{"TLS that stays closed", Tunnel, needsTLS, tls, false},
		{"TLS where there is none", Tunnel, needsTLS, http, true},
		{"requests out of sight", Tunnel, needsHTTP, tls, true},
		{"raw stays raw", Raw, unseen, tls, false},
		{"raw that is to be TLS", Raw, needsTLS, tls, true},
		{"raw, audited", Raw, policy.Decision{Verdict: policy.Allow, Needs: policy.WireTLS, Audit: true}, tls, false},
	} {
		if got := tt.kind.Blind(tt.d, tt.r); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for want, d := range map[policy.Reason]policy.Decision{
		policy.ReasonInterceptOff: open, policy.ReasonNotTLS: needsTLS, policy.ReasonNotHTTP: needsHTTP, policy.ReasonProtocol: unseen,
	} {
		if got := Unseen(d); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
