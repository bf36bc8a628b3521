//go:build unix

package advisory

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/gate"
	"egressd/policy"
	"egressd/sandbox"
)

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []eventtest.Line
}

func (r *recorder) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtest.Of(e))
	return nil
}

// allowing is a policy of one rule and one hosts entry.
func allowing(t *testing.T, rule, host string) *policy.Current {
	t.Helper()
	p, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: rule}}, Hosts: []policy.Entry{{Text: host}}})
	if err != nil {
		t.Fatal(err)
	}
	c := new(policy.Current)
	c.Store(p)
	return c
}

// result is a run with what it wrote.
type result struct {
	sandbox.Result
	out string
	err error
}

// advise runs a shell script in the env tier.
func advise(t *testing.T, a *Backend, spec sandbox.Spec) result {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	spec.Dir, spec.Stdout, spec.Stderr = "/", w, w
	spec.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	var res result
	res.Result, res.err = a.Run(ctx, spec)
	w.Close()
	out, _ := io.ReadAll(r)
	res.out = string(out)
	return res
}

func TestAdvisory(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "origin\n") }))
	defer origin.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(origin.URL, "http://"), ":")
	rec := new(recorder)
	a := &Backend{Gate: gate.Config{Events: rec, Policy: allowing(t, "service.example.com:"+port, "service.example.com=127.0.0.1")}}
	res := advise(t, a, sandbox.Spec{Argv: []string{"curl", "-sS", "-m5", "http://service.example.com:" + port}})
	if res.out != "origin\n" || res.err != nil {
		t.Errorf("allowed: %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	res = advise(t, a, sandbox.Spec{Argv: []string{"curl", "-sS", "-m5", "http://denied.example.com"}})
	if !strings.Contains(res.out, "blocked") {
		t.Errorf("denied: %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	for _, e := range rec.events {
		if e.Isolation != "advisory" {
			t.Errorf("an event without its label: %+v", e)
		}
	}
	if !slices.ContainsFunc(rec.events, func(e eventtest.Line) bool { return e.Decision == "blocked" && e.Host == "denied.example.com" }) {
		t.Error("no event for the denied request")
	}
	for _, tt := range []struct {
		argv []string
		code int
	}{{[]string{"sh", "-c", "exit 42"}, 42}, {[]string{"sh", "-c", "kill -9 $$"}, 137}, {[]string{"no-such-program"}, 127}, {[]string{"/usr"}, 126}} {
		if res := advise(t, a, sandbox.Spec{Argv: tt.argv}); res.ExitCode != tt.code || res.err != nil {
			t.Errorf("%v: exit %d, %v, want %d", tt.argv, res.ExitCode, res.err, tt.code)
		}
	}
}

func TestAdvisoryTimeout(t *testing.T) {
	marker := fmt.Sprintf("83%d", os.Getpid())
	res := advise(t, &Backend{}, sandbox.Spec{
		Argv:    []string{"sh", "-c", `trap "" TERM; sleep ` + marker + `; sleep ` + marker},
		Timeout: 100 * time.Millisecond, Grace: 100 * time.Millisecond,
	})
	if res.ExitCode != 124 || !res.TimedOut {
		t.Errorf("exit %d, %v", res.ExitCode, res.err)
	}
}
