package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/event"
	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
	"egressd/policy"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a user's directories and key.
type world struct {
	*testing.T
	dir, out string
	keys     Keys
	spec     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	return &world{T: t, dir: filepath.Join(dir, "receipts"), out: filepath.Join(dir, "run.json"), keys: Keys{Default: filepath.Join(dir, "state", "receipt.pem")}}
}

func (w *world) begin() *Ledger {
	w.Helper()
	key, spec, err := w.keys.Open(w.Context(), w.spec)
	must(w.T, err)
	l, err := Begin(w.Context(), Config{
		Dir: w.dir, Out: w.out, Key: key, KeySpec: spec, Session: "ABCDEFGH", Isolation: "process", Argv: []string{"make", "it"},
		PolicyHash: strings.Repeat("p", 64), Network: format.Network{DefaultDeny: true, AllowHosts: []string{"ok.test"}}, User: "alice", Now: time.Now,
	})
	must(w.T, err)
	return l
}

// left are the journals that are there.
func (w *world) left() []string {
	w.Helper()
	entries, err := os.ReadDir(w.dir)
	must(w.T, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// verified reads the receipt, which must be good.
func (w *world) verified() format.Bundle {
	w.Helper()
	text, err := os.ReadFile(w.out)
	must(w.T, err)
	if problems := receipt.Verify(text, receipt.Options{Strict: true}); problems != nil {
		w.Fatal(problems)
	}
	var b format.Bundle
	must(w.T, json.Unmarshal(text, &b))
	return b
}

func (w *world) recover() (outs []string, errs error) {
	open := func(spec string) (format.Key, error) {
		key, _, err := w.keys.Open(context.Background(), spec)
		return key, err
	}
	Recover(w.dir, open, time.Now, func(out string, err error) {
		outs = append(outs, out)
		errs = errors.Join(errs, err)
	})
	return outs, errs
}

func host(t *testing.T, s string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(s)
	must(t, err)
	return h
}

func flow(t *testing.T, name string, allowed bool) event.Event {
	t.Helper()
	c := &event.Connection{Host: host(t, name), Port: 443}
	if allowed {
		c.Decision = event.Allowed
	}
	return event.Event{Body: c}
}

// types are the types of a chain, and the hosts of its flows.
func types(t *testing.T, entries []chain.Entry) (all []string) {
	t.Helper()
	for _, e := range entries {
		var v struct{ Type, Host, Decision, Message string }
		must(t, json.Unmarshal(e.Event, &v))
		all = append(all, strings.TrimSpace(strings.Join([]string{v.Type, v.Host, v.Decision, v.Message}, " ")))
	}
	return all
}

func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.begin()
	for _, e := range []event.Event{
		{Body: &event.Command{ArgvHash: "x"}},
		flow(t, "ok.test", true),
		{Body: &event.Query{Host: host(t, "ok.test"), Verdict: event.Verdict{Decision: event.Allowed}}},
		{Body: &event.Query{Host: host(t, "no.test")}},
		{Body: &event.Packet{Proto: "udp", Dst: netip.MustParseAddr("192.0.2.1")}},
		{Body: &event.Connection{Addr: netip.MustParseAddrPort("192.0.2.2:22")}},
		{Body: &event.Close{Host: host(t, "ok.test")}},
		{Body: &event.RunCompleted{ExitCode: 0}},
		flow(t, "late.test", false),
	} {
		must(t, l.Emit(e))
	}
	must(t, l.Close())
	b := w.verified()
	want := []string{
		"run.created", "run.claimed", "workspace.materialized", "policy.evaluated", "network.connected ok.test allowed", "network.connected no.test blocked",
		"network.connected 192.0.2.1 blocked", "network.connected 192.0.2.2 blocked", "command.executed", "run.completed",
	}
	for i, typ := range types(t, b.Events) {
		if i >= len(want) || !strings.HasPrefix(typ, want[i]) {
			t.Errorf("event %d is %s", i, typ)
		}
	}
	if len(b.Events) != len(want) || b.Receipt.Status != format.StatusCompleted || b.Contract.Execution.Command != "make" {
		t.Errorf("%+v", b.Receipt)
	}
	if left := w.left(); left != nil {
		t.Errorf("left: %v", left)
	}
}

// However a run ends, there is one receipt.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"exit code", []event.Event{{Body: &event.Command{}}, {Body: &event.RunCompleted{ExitCode: 7}}}, "run.failed   agent exited with code 7"},
		{"failure", []event.Event{{Body: &event.Command{}}, {Body: &event.RunFailed{Error: "no such program"}}}, "run.failed   no such program"},
		{"no result", []event.Event{{Body: &event.Command{}}}, "run.failed   the run ended without a result"},
		{"no start", nil, "run.failed   the run did not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.begin()
			for _, e := range c.events {
				must(t, l.Emit(e))
			}
			must(t, l.Close())
			b := w.verified()
			all := types(t, b.Events)
			if all[len(all)-1] != c.want || b.Receipt.Status != format.StatusFailed {
				t.Errorf("got %q %s, want %q", all[len(all)-1], b.Receipt.Status, c.want)
			}
		})
	}
}

// killed is what SIGKILL does to a launcher: its descriptors are closed. A program
// that another test has just forked may have them, too, until it is executed, and
// with them the lock, which is therefore let go first.
func killed(t *testing.T, l *Ledger) {
	t.Helper()
	must(t, syscall.Flock(int(l.journal.Fd()), syscall.LOCK_UN))
	must(t, l.journal.Close())
}

func TestRecover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before func(t *testing.T, l *Ledger)
		want   string
	}{
		{"under way", func(*testing.T, *Ledger) {}, "run.failed   the launcher was killed"},
		{"in the middle of a line", func(t *testing.T, l *Ledger) {
			_, err := l.journal.WriteString(`{"version":"warrant.event.v1","seq":5,"ts":"20`)
			must(t, err)
		}, "run.failed   the launcher was killed"},
		{"before it was signed", func(t *testing.T, l *Ledger) { must(t, l.Emit(event.Event{Body: &event.RunCompleted{}})) }, "run.completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			l := w.begin()
			must(t, l.Emit(flow(t, "ok.test", true)))
			if outs, err := w.recover(); outs != nil || err != nil {
				t.Fatalf("the journal of a launcher that lives was taken: %v %v", outs, err)
			}
			c.before(t, l)
			killed(t, l)
			if outs, err := w.recover(); !slices.Equal(outs, []string{w.out}) || err != nil {
				t.Fatal(outs, err)
			}
			all := types(t, w.verified().Events)
			if all[len(all)-1] != c.want || !slices.Contains(all, "network.connected ok.test allowed") {
				t.Errorf("got %q", all)
			}
			if outs, err := w.recover(); outs != nil || err != nil || w.left() != nil {
				t.Errorf("a second time: %v %v %v", outs, err, w.left())
			}
		})
	}
}

// A journal that somebody has changed becomes no receipt, and is kept.
func TestRecoverTampered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.begin()
	must(t, l.Emit(flow(t, "evil.test", false)))
	killed(t, l)
	text, err := os.ReadFile(l.path)
	must(t, err)
	must(t, os.WriteFile(l.path, []byte(strings.Replace(string(text), "evil.test", "good.test", 1)), 0o600))
	outs, err := w.recover()
	if err == nil || !strings.Contains(err.Error(), "event chain broken at seq 4") || len(outs) != 1 || len(w.left()) != 1 {
		t.Errorf("%v %v %v", outs, err, w.left())
	}
	if _, err := os.Stat(w.out); err == nil {
		t.Error("there is a receipt")
	}
}

// Another key than the run began with signs nothing.
func TestRecoverOtherKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.begin()
	killed(t, l)
	must(t, os.Remove(w.keys.Default))
	must(t, os.Remove(w.keys.Default+".pub"))
	if _, _, err := w.keys.Open(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.recover(); err == nil || !strings.Contains(err.Error(), "that the run began with") {
		t.Error(err)
	}
}

// Nothing is on its way that is not on record: a journal that cannot be written
// denies.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.begin()
	killed(t, l)
	for range 2 {
		if err := l.Emit(flow(t, "ok.test", true)); err == nil {
			t.Error("a flow goes on that is not on record")
		}
	}
	if err := l.Close(); err == nil || len(w.left()) != 1 {
		t.Error(err, w.left())
	}
}

// Repeats are left out when the record is long; new hosts are not, up to a bound.
func TestFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.begin()
	must(t, l.Emit(flow(t, "ok.test", true)))
	l.count = maxEntries
	must(t, l.Emit(flow(t, "ok.test", true)))
	must(t, l.Emit(flow(t, "ok.test", false)))
	must(t, l.Emit(flow(t, "new.test", false)))
	if l.count != maxEntries+2 {
		t.Errorf("%d entries more, want 2", l.count-maxEntries)
	}
	l.count = maxEntries + maxHosts
	if err := l.Emit(flow(t, "newer.test", true)); err == nil {
		t.Error("a host goes on that is not on record")
	}
	must(t, l.Emit(flow(t, "new.test", false)))
	must(t, l.Close())
}

func TestRefusesPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, os.WriteFile(w.out, nil, 0o600))
	key, _, err := w.keys.Open(t.Context(), "")
	must(t, err)
	for name, want := range map[string]string{w.out: "exists already", filepath.Join(w.out, "x"): "its directory is not there"} {
		_, err := Begin(t.Context(), Config{Dir: w.dir, Out: name, Key: key, Argv: []string{"x"}, Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
