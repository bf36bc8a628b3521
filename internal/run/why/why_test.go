package why

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
)

// gate answers one CONNECT with what is given, and reports what was asked.
func gate(t *testing.T, answer string) (addr string, asked <-chan string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	heard := make(chan string, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		heard <- r.Method + " " + r.Host
		_, _ = io.WriteString(c, answer)
	}()
	return ln.Addr().String(), heard
}

func host(t *testing.T, name string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestAsk(t *testing.T) {
	const body = "egressd: the request to a.test:22 was blocked.\nReason: \x1b[2Jno rule.\nAdd: --allow a.test:22\n"
	for name, tt := range map[string]struct{ answer, want string }{
		"denied":  {"HTTP/1.1 403 Blocked\r\nConnection: close\r\n\r\n" + body, "denied   a.test:22\n  Reason: \\x1b[2Jno rule.\n  Add: --allow a.test:22\n"},
		"failed":  {"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", "failed   a.test:22\n"},
		"allowed": {"HTTP/1.1 200 OK\r\n\r\n", "allowed  a.test:22\n"},
		"none":    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			addr, asked := gate(t, tt.answer)
			a, err := Ask(context.Background(), addr, host(t, "a.test"), 22)
			if (err == nil) != (tt.want != "") || a.Text != tt.want || a.Allowed != (name == "allowed") {
				t.Errorf("%+v, %v", a, err)
			}
			if got := <-asked; got != "CONNECT a.test:22" {
				t.Errorf("asked %q", got)
			}
		})
	}
}

// Threat: a program inside is led by a variable to a proxy elsewhere, and tells it
// where the person may go.
func TestProxy(t *testing.T) {
	for value, ok := range map[string]bool{
		"http://127.0.0.1:3128": true, "http://[::1]:3128": true,
		"http://10.0.0.1:3128": false, "http://proxy.test:3128": false, "https://127.0.0.1:3128": false, "127.0.0.1:3128": false, "http://127.0.0.1": false, "": false,
	} {
		if got, err := Proxy(value); (err == nil) != ok {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
}

func lines(t *testing.T, events ...event.Event) io.Reader {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return strings.NewReader(b.String())
}

func TestLook(t *testing.T) {
	db, other := host(t, "db.test"), host(t, "other.test")
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	flow := func(session string, h policy.Host, port uint16, reason policy.Reason) event.Event {
		c := &event.Connection{Host: h, Port: port, Verdict: event.Verdict{Reason: reason}}
		if reason == policy.ReasonAllowed {
			c.Decision = event.Allowed
		}
		return event.Event{Time: at, Session: session, Body: c}
	}
	deny := flow("two", db, 443, policy.ReasonDeniedByRule)
	deny.Body.(*event.Connection).Rule = &policy.Rule{Text: "*.test", Pos: policy.Pos{File: "d.yaml", Line: 2, Column: 5}}
	asked := event.Event{Time: at, Session: "two", Body: &event.Query{Host: db, Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}}
	events := []event.Event{
		flow("one", db, 1, policy.ReasonHostNotListed),
		flow("two", db, 5432, policy.ReasonPortNotListed), flow("two", db, 5432, policy.ReasonPortNotListed),
		flow("two", other, 22, policy.ReasonHostNotListed), deny, asked, flow("two", db, 80, policy.ReasonAllowed),
	}
	const (
		port = "denied   db.test:5432   2 times\n  reason  port_not_listed: rules name this host, but not this port\n  to allow it, add:\n    --allow db.test:5432\n"
		rule = "denied   db.test:443   once\n  reason  denied_by_rule: a deny rule covers it\n  rule    *.test   (d.yaml:2:5)\n"
		name = "denied   db.test   once\n  reason  host_not_listed: no rule names this host\n  to allow it, add:\n    --allow db.test:PORT\n"
		last = "last refused at 2026-11-22 10:00:00\n"
	)
	for _, tt := range []struct {
		host policy.Host
		port uint16
		want string
	}{
		{db, 0, port + rule + name + last},
		{db, 5432, port + name + last},
		{host(t, "new.test"), 443, "the last run did not ask for new.test:443\n"},
	} {
		a, err := Look(lines(t, events...), tt.host, tt.port)
		if err != nil || a.Text != tt.want || a.Allowed {
			t.Errorf("%v:%d: got\n%s%v, want\n%s", tt.host, tt.port, a.Text, err, tt.want)
		}
	}
	a, err := Look(lines(t, flow("one", db, 80, policy.ReasonAllowed)), db, 0)
	if err != nil || !a.Allowed || a.Text != "allowed  db.test   once; nothing was refused\n" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := Look(strings.NewReader("{}\nnonsense\n"), db, 0); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("%v", err)
	}
}

func TestList(t *testing.T) {
	flow := func(session, name string, port uint16, reason policy.Reason) event.Event {
		return event.Event{Session: session, Body: &event.Connection{Host: host(t, name), Port: port, Verdict: event.Verdict{Reason: reason}}}
	}
	asked := event.Event{Session: "two", Body: &event.Query{Host: host(t, "db.test"), Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}}
	got, err := List(lines(t,
		flow("one", "old.test", 1, policy.ReasonHostNotListed),
		flow("two", "a.test", 443, policy.ReasonHostNotListed), flow("two", "a.test", 443, policy.ReasonHostNotListed),
		flow("two", "b.test", 443, policy.ReasonRefused), asked))
	if want := "a.test:443   2 times   no rule names this host\ndb.test   once   no rule names this host\n"; err != nil || got != want {
		t.Errorf("%v, got\n%s, want\n%s", err, got, want)
	}
	if got, err := List(lines(t, flow("one", "b.test", 443, policy.ReasonRefused))); err != nil || got != "nothing was refused\n" {
		t.Errorf("%v, %q", err, got)
	}
	if _, err := List(strings.NewReader("x\n")); err == nil {
		t.Error("a line that is no event was read")
	}
	var many []event.Event
	for i := range 2 * maxKinds {
		many = append(many, flow("one", "a.test", uint16(i+1), policy.ReasonHostNotListed))
	}
	if got, _ := List(lines(t, many...)); strings.Count(got, "\n") != maxKinds {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}
