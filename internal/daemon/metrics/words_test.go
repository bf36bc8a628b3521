package metrics

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/policy/room"
)

// However odd the events of a client are, they make no series but "other".
func TestCardinality(t *testing.T) {
	m := New("v")
	s := m.Sink("default")
	for i := range 5000 {
		x := strconv.Itoa(i)
		odd := uint8(100 + i%156) // no door, decision, reason or code
		emit(t, s,
			event.Event{Policy: x, Session: x, Body: &event.Connection{
				Door: event.Door(odd), Verdict: event.Verdict{Decision: event.Decision(odd), Reason: policy.Reason(odd), Rule: &policy.Rule{Text: x}},
				Port: uint16(i), Path: x, Method: x, Error: x,
			}},
			event.Event{Body: &event.Query{Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, RCode: event.RCode(odd), QType: x, Asked: x}},
			event.Event{Session: x, Body: &event.Close{Door: event.Door(odd), Duration: time.Duration(i) * time.Millisecond}},
			event.Event{Body: &event.FileChanged{Path: x}},
			event.Event{},
		)
	}
	has(t, scrape(t, m),
		`egressd_decisions_total{door="other",policy="default",reason="other",verdict="blocked"} 5000`,
		`egressd_decisions_total{door="dns",policy="default",reason="host_not_listed",verdict="blocked"} 5000`,
		`egressd_dns_queries_total{policy="default",rcode="other"} 5000`,
	)
	if n := series(t, m, "egressd_decisions_total") + series(t, m, "egressd_dns_queries_total") + series(t, m, "egressd_flow_duration_seconds"); n != 4 {
		t.Errorf("%d series, want 4", n)
	}
}

// Every combination that exists fits into one scrape, and each is told apart.
func TestEveryCombination(t *testing.T) {
	m := New("v")
	s := m.Sink("default")
	want := 0
	for door := range firstDoor + event.Door(doorCount) {
		for _, d := range []event.Decision{event.Allowed, event.Blocked} {
			for reason := range firstReason + policy.Reason(reasonCount) {
				if door == 0 {
					continue // counted with the one after the last
				}
				emit(t, s, decision(door, d, reason))
				want++
			}
		}
	}
	if n := series(t, m, "egressd_decisions_total"); n != want {
		t.Errorf("%d series for %d combinations", n, want)
	}
	for line := range strings.Lines(scrape(t, m)) {
		if strings.HasPrefix(line, "egressd_decisions_total{") && !strings.HasSuffix(line, " 1\n") {
			t.Errorf("two combinations share %s", line)
		}
	}
}

// Policies beyond what an operator can mean share one name.
func TestPolicyNames(t *testing.T) {
	m := New("v")
	for i := range maxPolicies + 100 {
		name := "p" + strconv.Itoa(i)
		emit(t, m.Sink(name), decision(event.DoorHTTP, event.Blocked, policy.ReasonNotTLS))
		m.Gate(name, func() Stats { return Stats{} })
		m.PolicyRejected(name)
	}
	emit(t, m.Sink("a\xff"), decision(event.DoorHTTP, event.Blocked, policy.ReasonNotTLS))
	emit(t, m.Sink(""), decision(event.DoorHTTP, event.Blocked, policy.ReasonNotAuthenticated))
	for _, name := range []string{"egressd_decisions_total", "egressd_open_flows", "egressd_policy_last_load_successful"} {
		if n := series(t, m, name); n > maxPolicies+2 {
			t.Errorf("%s has %d series", name, n)
		}
	}
	has(t, scrape(t, m),
		`egressd_decisions_total{door="http",policy="other",reason="not_tls",verdict="blocked"} 101`,
		`egressd_decisions_total{door="http",policy="none",reason="not_authenticated",verdict="blocked"} 1`,
	)
}

// The list of doors is that of package event.
func TestDoorsAreTotal(t *testing.T) {
	found := 0
	for d := range event.Door(255) {
		if d.String() == "" {
			continue
		}
		found++
		if word(place(d, firstDoor, lastDoor), firstDoor, lastDoor) != d.String() {
			t.Errorf("door %s is counted as other", d)
		}
	}
	if found < 8 || doorCount != found+1 {
		t.Errorf("found %d doors, %d are counted", found, doorCount-1)
	}
}

// The list of reasons is that of package policy, and has an end.
func TestReasonsAreTotal(t *testing.T) {
	found := 0
	for r := range policy.Reason(255) {
		if r.String() == policy.Reason(255).String() {
			continue
		}
		found++
		if word(place(r, firstReason, lastReason), firstReason, lastReason) != r.String() {
			t.Errorf("reason %s is counted as other", r)
		}
	}
	if found > 64 || reasonCount != found+1 {
		t.Errorf("found %d reasons, %d are counted", found, reasonCount-1)
	}
}

// Every limit of a policy is shown, none with the zero that means a default.
func TestLimitsAreTotal(t *testing.T) {
	shown := limitsInForce(policy.Limits{}, room.Room{})
	if n := reflect.TypeFor[policy.Limits]().NumField(); len(shown) != n {
		t.Errorf("%d limits are shown, a policy has %d", len(shown), n)
	}
	for name, n := range shown {
		if n <= 0 {
			t.Errorf("%s is %v: nothing is unlimited", name, n)
		}
		doc := fmt.Sprintf("limits:\n  %s: 3\n", name)
		if got := limitsInForce(compiled(t, doc).Limits(), room.Room{})[name]; got != 3 {
			t.Errorf("%s is %v, the policy says 3", name, got)
		}
	}
}
