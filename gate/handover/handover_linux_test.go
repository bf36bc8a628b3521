package handover

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
)

func at(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }

// A session passes what both policies allow, and its launcher hears of it all.
func TestSession(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), at("own.test", port), "=a.test=127.0.0.1"), nil)
	l := d.join(t, offer("one", doc(at("a.test", port), at("over.test", port), "=a.test=127.0.0.1", "=over.test=127.0.0.1")))
	opened := d.record.wait(t, "the session", ofType("session.opened"))
	if opened.Client != fmt.Sprintf("uid=%d gid=%d pid=%d", os.Geteuid(), os.Getegid(), os.Getpid()) || opened.Policy != l.Digest() || opened.Name != "default" || opened.Session != "one" {
		t.Errorf("%+v", opened)
	}
	c, err := l.tunnel(at("a.test", port))
	if err != nil || !echo(c) {
		t.Fatalf("allowed by both: %v", err)
	}
	for _, tt := range []struct{ host, want string }{{"over.test", "outside_ceiling"}, {"own.test", "host_not_listed"}} {
		if _, err := l.tunnel(at(tt.host, port)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.host, err)
		}
	}
	c.Close()
	l.record.wait(t, "the close", ofType("network.closed"))
	l.leave()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	closed := d.record.wait(t, "the end", ofType("session.closed"))
	if closed.Error != "" {
		t.Errorf("%+v", closed)
	}
	// Both records tell the same.
	var theirs, ours []string
	for _, e := range d.record.all {
		if e.Session == "one" && strings.HasPrefix(e.Type, "network.") {
			theirs = append(theirs, e.Type)
		}
	}
	for _, e := range l.record.all {
		ours = append(ours, e.Type)
		if e.Session != "one" || e.Isolation != "netns" {
			t.Errorf("%+v", e)
		}
	}
	if fmt.Sprint(ours) != fmt.Sprint(theirs) || len(ours) != 4 {
		t.Errorf("the launcher heard %v, the daemon recorded %v", ours, theirs)
	}
	if len(l.lost) > 0 {
		t.Errorf("the launcher says that the daemon is gone: %v", <-l.lost)
	}
	for deadline := time.Now().Add(5 * time.Second); len(d.Gates()) != 0; {
		if time.Now().After(deadline) {
			t.Fatal("the session still counts")
		}
		time.Sleep(time.Millisecond) // polling: it goes after its last event, and tells nobody
	}
}

// When the launcher goes, so do its doors and flows, copies of them included.
func TestLauncherGoes(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), "=a.test=127.0.0.1"), nil)
	o := offer("one", doc(at("a.test", port), "=a.test=127.0.0.1"))
	r, err := Dial(t.Context(), d.path, o)
	if err != nil {
		t.Fatal(err)
	}
	s := loopback(t)
	kept := dup(t, s.Explicit) // a launcher that keeps a copy
	l := &launcher{Client: r, proxy: localAddr(t, s.Explicit)}
	if err := r.link.sendJSON(kindDoors, s.layout()); err != nil { // without the sockets
		t.Fatal(err)
	}
	d.record.wait(t, "the end", func(e eventtest.Line) bool {
		return e.Type == "session.closed" && strings.Contains(e.Error, "number of sockets")
	})

	r, err = Dial(t.Context(), d.path, offer("two", o.Documents...))
	if err != nil {
		t.Fatal(err)
	}
	r.offer.Events = newRecords()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	if err := r.Open(ctx, &wg, s); err != nil {
		t.Fatal(err)
	}
	c, err := l.tunnel(at("a.test", port))
	if err != nil || !echo(c) {
		t.Fatal(err)
	}
	if err := r.link.c.Close(); err != nil { // as kill -9 does
		t.Fatal(err)
	}
	if !closed(c) {
		t.Error("its flow lives on")
	}
	d.record.wait(t, "the end", func(e eventtest.Line) bool { return e.Type == "session.closed" && e.Session == "two" })
	if c, err := net.DialTimeout("tcp", l.proxy, patience); err == nil {
		c.Close()
		t.Error("its door is still open")
	}
	kept.Close()
}

func dup(t *testing.T, f *os.File) net.Listener {
	t.Helper()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// When the daemon goes, the launcher says so and nothing passes any more.
func TestDaemonGoes(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), "=a.test=127.0.0.1"), nil)
	l := d.join(t, offer("one", doc(at("a.test", port), "=a.test=127.0.0.1")))
	c, err := l.tunnel(at("a.test", port))
	if err != nil || !echo(c) {
		t.Fatal(err)
	}
	d.stop()
	select {
	case err := <-l.lost:
		if !strings.Contains(err.Error(), "shut down") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the launcher was not told")
	}
	if !closed(c) {
		t.Error("its flow lives on")
	}
	if _, err := l.tunnel(at("a.test", port)); err == nil {
		t.Error("there is still a way out")
	}
}

// A changed ceiling holds for sessions that stand, and for their open flows.
func TestRenarrow(t *testing.T) {
	one, two := origin(t), origin(t)
	wide := doc(at("a.test", one), at("b.test", two), "=a.test=127.0.0.1", "=b.test=127.0.0.1")
	d := serve(t, wide, nil)
	l := d.join(t, offer("one", wide))
	a, errA := l.tunnel(at("a.test", one))
	b, errB := l.tunnel(at("b.test", two))
	if err := errors.Join(errA, errB); err != nil || !echo(a) || !echo(b) {
		t.Fatal(err)
	}
	d.Ceiling.Store(compile(t, doc(at("a.test", one), "=a.test=127.0.0.1")))
	if n := d.Renarrow(); n != 1 {
		t.Errorf("%d flows were closed, want 1", n)
	}
	if !closed(b) {
		t.Error("a flow that is denied now lives on")
	}
	if !echo(a) {
		t.Error("a flow that is allowed still was closed")
	}
	if _, err := l.tunnel(at("b.test", two)); err == nil || !strings.Contains(err.Error(), "outside_ceiling") {
		t.Errorf("denied now: %v", err)
	}
	d.Ceiling.Store(compile(t, wide))
	d.Renarrow()
	if c, err := l.tunnel(at("b.test", two)); err != nil || !echo(c) {
		t.Errorf("allowed again: %v", err)
	}
	d.Ceiling.Store(compile(t, doc(fmt.Sprintf("GET https://a.test:%d/**", one), "=a.test=127.0.0.1")))
	d.Renarrow()
	if c, err := l.tunnel(at("a.test", one)); err != nil || tls.Client(c, &tls.Config{ServerName: "a.test"}).Handshake() == nil {
		t.Errorf("it is to be opened, by an authority that does not exist: %v", err)
	}
	l.record.wait(t, "the denial", func(e eventtest.Line) bool { return e.Reason == "intercept_off" && e.Decision == "blocked" })
	d.Ceiling.Store(nil)
	d.Renarrow()
	if _, err := l.tunnel(at("a.test", one)); err == nil || !strings.Contains(err.Error(), "no_policy") {
		t.Errorf("without a ceiling: %v", err)
	}
}

// What the launcher can't record does not pass.
func TestUnrecorded(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), "=a.test=127.0.0.1"), nil)
	l := d.join(t, offer("one", doc(at("a.test", port), "=a.test=127.0.0.1")))
	l.record.failWith(errors.New("no space"))
	if _, err := l.tunnel(at("a.test", port)); err == nil || !strings.Contains(err.Error(), "cannot write its record") {
		t.Errorf("unrecorded, and yet it passes, or nobody says why: %v", err)
	}
	l.record.failWith(nil)
	if c, err := l.tunnel(at("a.test", port)); err != nil || !echo(c) {
		t.Errorf("recorded again: %v", err)
	}
}

// A launcher that does not read holds up nobody else.
func TestDeafLauncher(t *testing.T) {
	port := origin(t)
	allow := doc(at("a.test", port), "=a.test=127.0.0.1")
	d := serve(t, allow, nil)
	hold := make(chan struct{})
	o := offer("deaf", allow)
	o.Events = sinkFunc(func(event.Event) error { <-hold; return nil })
	deaf, other := d.join(t, o), d.join(t, offer("other", allow))
	passed := make(chan bool, 1)
	go func() {
		c, err := deaf.tunnel(at("a.test", port))
		passed <- err == nil && echo(c)
	}()
	start := time.Now()
	if c, err := other.tunnel(at("a.test", port)); err != nil || !echo(c) || time.Since(start) > AckTimeout/2 {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if <-passed {
		t.Error("unrecorded, and yet it passes")
	}
	close(hold)
	if c, err := deaf.tunnel(at("a.test", port)); err != nil || !echo(c) {
		t.Errorf("once it reads again: %v", err)
	}
}

func TestDrain(t *testing.T) {
	port := origin(t)
	allow := doc(at("a.test", port), "=a.test=127.0.0.1")
	d := serve(t, allow, nil)
	l := d.join(t, offer("one", allow))
	c, err := l.tunnel(at("a.test", port))
	if err != nil || !echo(c) {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- d.Drain(ctx) }()
	limit := time.Now().Add(patience)
	for {
		if _, err := d.tryJoin(t, offer("late")); err != nil && strings.Contains(err.Error(), "shut down") {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("a session while draining: %v", err)
		}
	}
	if !echo(c) {
		t.Error("an open flow was closed")
	}
	cancel()
	<-done
	if !closed(c) {
		t.Error("a flow outlives the drain")
	}
}
