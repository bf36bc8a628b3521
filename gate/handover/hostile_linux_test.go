package handover

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/event"
)

// Threat: a launcher stops reading, so that the daemon's operator does not learn
// how much a flow carried.
func TestClosesAreRecordedUnread(t *testing.T) {
	port := origin(t)
	allow := doc(at("a.test", port), "=a.test=127.0.0.1")
	d := serve(t, allow, nil)
	hold := make(chan struct{})
	o := offer("deaf", allow)
	o.Events = sinkFunc(func(e event.Event) error {
		if !e.Allowed() {
			<-hold
		}
		return nil
	})
	c, err := d.join(t, o).tunnel(at("a.test", port))
	if err != nil || !echo(c) {
		t.Fatalf("no tunnel: %v", err)
	}
	t.Cleanup(func() { close(hold) })
	noise := event.Event{Body: &event.Connection{Door: event.DoorConnect, Path: "x"}}
	for full := 0; full < 20; full++ { // once the socket is full, too, it stays so
		for !errors.Is(d.list()[0].events.Emit(noise), errNoRoom) {
			full = 0
		}
		wait(t.Context(), time.Millisecond)
	}
	c.Close()
	d.record.wait(t, "the end of the flow", ofType("network.closed"))
}

func TestBothSinks(t *testing.T) {
	fails := errors.New("no")
	for _, tt := range []struct {
		body event.Body
		told bool
	}{{&event.Query{Verdict: event.Verdict{Decision: event.Allowed}}, false}, {new(event.Query), true}, {new(event.Close), true}} {
		record := newRecords()
		err := sinkPair{sinkFunc(func(event.Event) error { return fails }), record}.Emit(event.Event{Body: tt.body})
		if !errors.Is(err, fails) || len(record.all) > 0 != tt.told {
			t.Errorf("%+v: error %v, recorded %v", tt.body, err, record.all)
		}
	}
}

// Threat: a launcher takes the word of another's session, or of the daemon's own
// policy, and the record tells its flows, or its refusal, of the other.
func TestWordsAreTakenOnce(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	d.join(t, offer("victim"))
	other := serve(t, doc("a.test"), func(s *Server) { s.IDs = d.IDs })
	d.IDs.Store("default", struct{}{})
	for _, at := range []*daemon{d, other} {
		for _, word := range []string{"victim", "default"} {
			if _, err := at.tryJoin(t, offer(word)); err == nil || !strings.Contains(err.Error(), "there is a session "+word) {
				t.Errorf("%s again: %v", word, err)
			}
		}
		if e := at.record.wait(t, "a refusal", ofType("session.refused")); e.Session != "" {
			t.Errorf("the refusal is told of session %q", e.Session)
		}
	}
	if _, taken := d.IDs.Load("victim"); !taken {
		t.Error("a refused session took the word from the one that has it")
	}
}

// Threat: a user fills the daemon's memory with policies, each of an allowed
// length.
func TestPoliciesHaveABudget(t *testing.T) {
	for _, limits := range []Limits{{Bytes: 1000}, {BytesPerUser: 1000}} {
		d := serve(t, doc("a.test"), func(s *Server) { s.Limits = limits })
		first := d.join(t, offer("one", doc("a.test")))
		long := doc("a.test")
		for range 100 {
			long.Deny = append(long.Deny, long.Allow[0])
		}
		if _, err := d.tryJoin(t, offer("two", long)); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%+v: %v", limits, err)
		}
		first.leave()
		d.settle(t)
		if d.bytes != 0 {
			t.Errorf("%d bytes still count", d.bytes)
		}
	}
}

// Threat: a user connects without end and says nothing, so that nobody else is
// heard.
func TestUsersTakeTurns(t *testing.T) {
	s := new(Server)
	silent, err := s.enqueue(1)
	if err != nil {
		t.Fatal(err)
	}
	for range maxSettingUpUser {
		if _, err := s.turn(t.Context(), silent); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.turn(ended, silent); err == nil {
		t.Error("a user takes more turns than are one user's")
	}
	other, err := s.enqueue(2)
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.turn(t.Context(), other)
	if err != nil {
		t.Fatalf("another user waits: %v", err)
	}
	done()
	for range maxWaitingUser - 1 {
		if _, err := s.enqueue(1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.enqueue(1); err == nil {
		t.Error("a user's connections wait without a bound")
	}
	if _, err := s.enqueue(2); err != nil {
		t.Errorf("another user is turned away: %v", err)
	}
}

// Threat: a launcher keeps copies of its listeners and makes them blocking, so
// that the daemon runs out of threads.
func TestBlockingDoors(t *testing.T) {
	turns := make(chan struct{}, 1)
	open := func() (*door, *os.File) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp := ln.(*net.TCPListener)
		cp, err := tcp.File()
		if err != nil {
			t.Fatal(err)
		}
		d, err := newDoor(tcp, turns)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cp.Close(); d.Close() })
		return d.(*door), cp
	}
	block := func(f *os.File) int {
		fd := int(f.Fd()) // makes it blocking
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Fatalf("still non-blocking: %v", err)
		}
		return fd
	}
	ended := func(what string, f func() error, want error) {
		done := make(chan error, 1)
		go func() { done <- f() }()
		select {
		case err := <-done:
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		case <-time.After(patience):
			t.Fatalf("%s: accept sleeps in the kernel", what)
		}
	}
	d, cp := open()
	block(cp)
	ended("before the look", func() error { _, err := d.Accept(); return err }, errBlocking)

	d, cp = open()
	fd := block(cp)
	ended("behind the look", func() error {
		defer d.watchAccept()()
		_, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
		return err
	}, unix.EINVAL)

	d, _ = open()
	done := make(chan error, 1)
	go func() { _, err := d.Accept(); done <- err }()
	c, err := net.Dial("tcp", d.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-done; err != nil {
		t.Errorf("an honest launcher's door: %v", err)
	}
	go func() { _, err := d.Accept(); done <- err }()
	turns <- struct{}{} // nobody is in accept while they wait
	<-turns
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
