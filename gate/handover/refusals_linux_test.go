package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/policy/files"
)

// Every way in which a session could ask for more than the ceiling gives.
func TestOnlyNarrows(t *testing.T) {
	port := origin(t)
	ceiling := doc(at("a.test", port), at("moved.test", port), "web.test", "=a.test=127.0.0.1")
	for _, tt := range []struct {
		name string
		own  *policy.Document
		to   string
		want string
	}{
		{"another host", doc(at("b.test", port), "=b.test=127.0.0.1"), at("b.test", port), "outside_ceiling"},
		{"a wildcard", doc(".test:*", "=b.test=127.0.0.1"), at("b.test", port), "outside_ceiling"},
		{"another port", doc("a.test:*", "=a.test=127.0.0.1"), at("a.test", 22), "outside_ceiling"},
		{"an address", doc(at("127.0.0.1", port)), at("127.0.0.1", port), "outside_ceiling"},
		{"a range", doc("127.0.0.0/8:*"), at("127.0.0.1", port), "outside_ceiling"},
		{"an allowed name moved to a private address", doc(at("moved.test", port), "=moved.test=127.0.0.1"), at("moved.test", port), "outside_ceiling"},
		{"an allowed name moved to a public address", doc(at("moved.test", port), "=moved.test=192.88.99.1"), at("moved.test", port), "outside_ceiling"},
		{"an allowed name moved elsewhere in public", doc(at("moved.test", port), "=moved.test=8.8.8.8"), at("moved.test", port), "outside_ceiling"},
		{"an allowed name moved, with a rule for where", doc(at("moved.test", port), "127.0.0.0/8:*", "=moved.test=127.0.0.1"), at("moved.test", port), "outside_ceiling"},
		{"its own DNS server", &policy.Document{Allow: doc(at("moved.test", port)).Allow, DNS: policy.DNS{Mode: policy.DNSForward, Upstreams: []policy.Entry{{Text: "127.0.0.1"}}}}, at("moved.test", port), "dns_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := serve(t, ceiling, nil)
			l := d.join(t, offer("one", tt.own))
			if c, err := l.tunnel(tt.to); err == nil || !strings.Contains(err.Error(), tt.want) {
				if c != nil {
					c.Close()
				}
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	many := doc()
	for i := range 200 {
		many.Allow = append(many.Allow, policy.Entry{Text: fmt.Sprintf("h%d.test", i)})
	}
	with := func(o Offer, f func(*Offer)) Offer { f(&o); return o }
	for _, tt := range []struct {
		name   string
		offer  Offer
		change func(*Server)
		want   string
	}{
		{"a session that audits", offer("one", &policy.Document{Audit: true}), nil, "--audit"},
		{"a port of the host", with(offer("one", doc("raw:host.internal:99", "=host.internal=127.0.0.1")), func(o *Offer) { o.HostPorts = []uint16{99} }), nil, "--host-port 99"},
		{"a bad policy", offer("one", doc("a..b")), nil, "empty label"},
		{"a bad word", offer("one two"), nil, "word"},
		{"a bad hash", with(offer("one"), func(o *Offer) { o.ArgvHash = "x" }), nil, "hash"},
		{"another isolation", with(offer("one"), func(o *Offer) { o.Isolation = "advisory" }), nil, "isolation"},
		{"a secret without a value", with(offer("one"), func(o *Offer) { o.Secrets = []Secret{{Env: "A", Placeholder: "p"}} }), nil, "secret A"},
		{"a secret of two lines", with(offer("one"), func(o *Offer) { o.Secrets = []Secret{{Env: "A", Placeholder: "p", Value: "a\r\nHost: b"}} }), nil, "control byte"},
		{"a secret in a header that routes", offer("one", &policy.Document{
			Allow:   doc("a.test").Allow,
			Secrets: []policy.Secret{{Env: "A", Header: "Host", Hosts: []policy.Host{host(t, "a.test")}}},
		}), nil, "names no HTTP header"},
		{"a limit below zero", offer("one", &policy.Document{Limits: policy.Limits{Connections: -1}}), nil, "limits.connections"},
		{"too long a policy", offer("one", many), func(s *Server) { s.Limits.HelloBytes = 1000 }, "longer than"},
		{"no ceiling", offer("one"), func(s *Server) { s.Ceiling = new(policy.Current) }, "not in force"},
		{"no record", offer("one"), func(s *Server) { s.Events = nil }, "no record"},
		{"a record that is full", offer("one"), func(s *Server) { s.Events.(*records).failWith(errors.New("no space")) }, "could not be recorded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := serve(t, doc("a.test"), tt.change)
			_, err := d.tryJoin(t, tt.offer)
			var no *RefusedError
			if !errors.As(err, &no) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %s", err, tt.want)
			}
			if d.record.fail == nil && d.Events != nil {
				e := d.record.wait(t, "the refusal", ofType("session.refused"))
				if !strings.Contains(e.Error, tt.want) || !strings.HasPrefix(e.Client, fmt.Sprintf("uid=%d ", os.Geteuid())) {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// A ceiling with a files section refuses a session that would get more, and says
// what to add: the launcher holds the files, the daemon sees none.
func TestFilesCeiling(t *testing.T) {
	section := func(write, hide string) files.Section {
		s := files.Section{Hide: []files.Rule{{Path: hide, At: "--hide #1"}}}
		if write != "" {
			s.Write = []files.Rule{{Path: write, At: "--write #1"}}
		}
		return s
	}
	d := serve(t, &policy.Document{Allow: doc("a.test").Allow, Files: section("/srv/out", "/srv/key")}, nil)
	for _, tt := range []struct {
		name string
		own  files.Section
		want string // "": accepted
	}{
		{"one", section("/srv/out", "/srv/key"), ""},
		{"two", section("", "/srv/key"), ""},
		{"three", files.Section{}, "add --hide /srv/key"},
		{"four", section("/srv", "/srv/key"), "--write #1: it does not let a program write /srv"},
	} {
		_, err := d.tryJoin(t, offer(tt.name, &policy.Document{Files: tt.own}))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestAuditingCeiling(t *testing.T) {
	d := serve(t, &policy.Document{Audit: true}, nil)
	if _, err := d.tryJoin(t, offer("one", &policy.Document{Audit: true})); err != nil {
		t.Error(err)
	}
}

func TestNumberOfSessions(t *testing.T) {
	for _, limits := range []Limits{{Handovers: 2}, {HandoversPerUser: 2}} {
		d := serve(t, doc("a.test"), func(s *Server) { s.Limits = limits })
		first, _ := d.join(t, offer("one")), d.join(t, offer("two"))
		if _, err := d.tryJoin(t, offer("three")); err == nil || !strings.Contains(err.Error(), "2 sessions already") {
			t.Errorf("%+v: %v", limits, err)
		}
		first.leave()
		d.record.wait(t, "the end", ofType("session.closed"))
		limit := time.Now().Add(patience)
		for len(d.Gates()) > 1 && time.Now().Before(limit) {
			wait(t.Context(), time.Millisecond) // the count follows the event
		}
		if _, err := d.tryJoin(t, offer("two")); err == nil || !strings.Contains(err.Error(), "there is a session two") {
			t.Errorf("%+v: the same word twice: %v", limits, err)
		}
		d.join(t, offer("three"))
	}
}

// The launcher's and the daemon's own listeners are no destinations.
func TestOwnListeners(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("127.0.0.1", port)), nil)
	o := offer("one", doc(at("127.0.0.1", port)))
	o.Own = []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	l := d.join(t, o)
	if _, err := l.tunnel(at("127.0.0.1", port)); err == nil || !strings.Contains(err.Error(), "proxy_loop_detected") {
		t.Errorf("got %v", err)
	}
}

// A bug that one launcher meets costs that launcher its session.
func TestBugIsContained(t *testing.T) {
	port := origin(t)
	allow := doc(at("a.test", port), "=a.test=127.0.0.1")
	d := serve(t, allow, func(s *Server) {
		whole := s.Events
		s.Events = sinkFunc(func(e event.Event) error {
			if e.Type() == "session.opened" && e.Session == "unlucky" {
				panic("a bug")
			}
			return whole.Emit(e)
		})
	})
	if _, err := d.tryJoin(t, offer("unlucky", allow)); err == nil {
		t.Error("the bug was not met")
	}
	d.settle(t)
	if c, err := d.join(t, offer("one", allow)).tunnel(at("a.test", port)); err != nil || !echo(c) {
		t.Errorf("another session: %v", err)
	}
}

// A daemon that ends waits for no launcher, also where it ends between two words.
func TestEndedDaemonWaitsForNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	silent, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := ln.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	o := &handover{link: &link{c: c, in: c}}
	o.within(ended, patience)
	begin := time.Now()
	if _, _, err := o.link.receive(maxFrame); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) > patience/2 {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}
