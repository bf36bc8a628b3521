package metrics

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
)

// However odd the events of a client are, they make no series but "other".
func TestCardinality(t *testing.T) {
	m := New("v")
	s := m.Sink("default")
	for i := range 5000 {
		x := strconv.Itoa(i)
		emit(t, s,
			event.Event{Type: event.NetworkConnected, Door: event.Door(x), Decision: x, Reason: x, Host: x, Path: x, Method: x, Server: x, Rule: x, Client: x, Policy: x, Session: x},
			event.Event{Type: event.DNSQuery, Door: event.DoorDNS, Decision: event.Blocked, RCode: x, QType: x, Reason: "host_not_listed"},
			event.Event{Type: event.NetworkClosed, Door: event.Door(x), Session: x, DurationMS: int64(i)},
			event.Event{Type: event.Type(x)},
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
	for _, door := range m.words.doors {
		for _, word := range []string{event.Allowed, event.Blocked} {
			for _, reason := range m.words.reasons {
				emit(t, s, event.Event{Type: event.NetworkConnected, Door: event.Door(door), Decision: word, Reason: reason})
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
	w := newWords()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../event/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Door" {
			return true
		}
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if !slices.Contains(w.doors, word) {
			t.Errorf("door %s is counted as other", word)
		}
		return true
	})
	if found < 8 {
		t.Errorf("found only %d doors", found)
	}
}

// The list of reasons is that of package policy, and has an end.
func TestReasonsAreTotal(t *testing.T) {
	w := newWords()
	for r := policy.ReasonNoPolicy; r <= policy.ReasonInternal; r++ {
		if !slices.Contains(w.reasons, r.String()) {
			t.Errorf("reason %s is counted as other", r)
		}
	}
	if slices.Contains(w.reasons, "unknown_reason") || len(w.reasons) > 64 || len(w.reason) != len(w.reasons) {
		t.Errorf("%d reasons: %v", len(w.reasons), w.reasons)
	}
}

// Every limit of a policy is shown, none with the zero that means a default.
func TestLimitsAreTotal(t *testing.T) {
	shown := limitsInForce(policy.Limits{})
	if n := reflect.TypeFor[policy.Limits]().NumField(); len(shown) != n {
		t.Errorf("%d limits are shown, a policy has %d", len(shown), n)
	}
	for name, n := range shown {
		if n <= 0 {
			t.Errorf("%s is %v: nothing is unlimited", name, n)
		}
		doc := fmt.Sprintf("limits:\n  %s: 3\n", name)
		if got := limitsInForce(compiled(t, doc).Limits())[name]; got != 3 {
			t.Errorf("%s is %v, the policy says 3", name, got)
		}
	}
}
