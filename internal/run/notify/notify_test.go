package notify

import (
	"fmt"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
)

func host(t *testing.T, name string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func blocked(r policy.Reason) event.Verdict { return event.Verdict{Reason: r} }

func TestSink(t *testing.T) {
	var b strings.Builder
	s := &Sink{W: &b}
	a, db := host(t, "a.test"), host(t, "db.test")
	for _, e := range []event.Body{
		&event.Connection{Host: a, Port: 443, Verdict: blocked(policy.ReasonHostNotListed)},
		&event.Connection{Host: a, Port: 443, Verdict: blocked(policy.ReasonHostNotListed)},
		&event.Connection{Host: a, Port: 22, Verdict: blocked(policy.ReasonPortNotListed)},
		&event.Query{Host: db, Verdict: blocked(policy.ReasonHostNotListed)},
		&event.Connection{Host: db, Port: 443, Verdict: blocked(policy.ReasonNotTLS)},
		&event.Connection{Host: a, Port: 443, Verdict: blocked(policy.ReasonRefused)},
		&event.Connection{Host: a, Port: 443, Verdict: event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}},
		&event.Query{Asked: "\x1b[2J", Verdict: blocked(policy.ReasonMalformed)},
		&event.Command{},
	} {
		if err := s.Emit(event.Event{Body: e}); err != nil {
			t.Fatal(err)
		}
	}
	const want = `launch: blocked a.test:443: no rule names this host; to allow it: --allow a.test
launch: blocked a.test:22: rules name this host, but not this port; to allow it: --allow a.test:22
launch: blocked db.test: no rule names this host; to allow it: --allow db.test:PORT
launch: blocked db.test:443: port 443 must speak TLS; a raw: rule lifts that
`
	if b.String() != want {
		t.Errorf("got\n%s, want\n%s", b.String(), want)
	}
}

// A program may ask for any number of hosts.
func TestSinkIsBounded(t *testing.T) {
	var b strings.Builder
	s := &Sink{W: &b}
	for i := range 2 * maxLines {
		_ = s.Emit(event.Event{Body: &event.Connection{Host: host(t, fmt.Sprintf("h%d.test", i)), Port: 443, Verdict: blocked(policy.ReasonHostNotListed)}})
	}
	if n := strings.Count(b.String(), "\n"); n != maxLines+1 || len(s.told) != maxLines+1 {
		t.Errorf("%d lines, %d kept", n, len(s.told))
	}
}
