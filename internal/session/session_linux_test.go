package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
)

func at(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }

// A session passes what both policies allow, and its launcher hears of it all.
func TestSession(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), at("own.test", port), "=a.test=127.0.0.1"), nil)
	l := d.join(t, offer("one", doc(at("a.test", port), at("over.test", port), "=a.test=127.0.0.1", "=over.test=127.0.0.1")))
	opened := d.record.wait(t, "the session", ofType(event.SessionOpened))
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
	l.record.wait(t, "the close", ofType(event.NetworkClosed))
	l.leave()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	closed := d.record.wait(t, "the end", ofType(event.SessionClosed))
	if closed.Error != "" {
		t.Errorf("%+v", closed)
	}
	// Both records tell the same.
	var theirs, ours []event.Type
	for _, e := range d.record.all {
		if e.Session == "one" && strings.HasPrefix(string(e.Type), "network.") {
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
	if len(d.Gates()) != 0 {
		t.Error("the session still counts")
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
	l := &launcher{Remote: r, proxy: localAddr(t, s.Explicit)}
	if err := r.link.sendJSON(kindDoors, s.shape()); err != nil { // without the sockets
		t.Fatal(err)
	}
	d.record.wait(t, "the end", func(e event.Event) bool {
		return e.Type == event.SessionClosed && strings.Contains(e.Error, "number of sockets")
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
	d.record.wait(t, "the end", func(e event.Event) bool { return e.Type == event.SessionClosed && e.Session == "two" })
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
		{"its own DNS server", &policy.Document{Allow: doc(at("moved.test", port)).Allow, DNS: policy.DNS{Mode: "forward", Upstreams: []policy.Entry{{Text: "127.0.0.1"}}}}, at("moved.test", port), "dns_error"},
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
				e := d.record.wait(t, "the refusal", ofType(event.SessionRefused))
				if !strings.Contains(e.Error, tt.want) || !strings.HasPrefix(e.Client, fmt.Sprintf("uid=%d ", os.Geteuid())) {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

func TestAuditingCeiling(t *testing.T) {
	d := serve(t, &policy.Document{Audit: true}, nil)
	if _, err := d.tryJoin(t, offer("one", &policy.Document{Audit: true})); err != nil {
		t.Error(err)
	}
}

func TestNumberOfSessions(t *testing.T) {
	for _, limits := range []Limits{{Sessions: 2}, {SessionsPerUser: 2}} {
		d := serve(t, doc("a.test"), func(s *Server) { s.Limits = limits })
		first, _ := d.join(t, offer("one")), d.join(t, offer("two"))
		if _, err := d.tryJoin(t, offer("three")); err == nil || !strings.Contains(err.Error(), "2 sessions already") {
			t.Errorf("%+v: %v", limits, err)
		}
		first.leave()
		d.record.wait(t, "the end", ofType(event.SessionClosed))
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
	l.record.wait(t, "the denial", func(e event.Event) bool { return e.Reason == "intercept_off" && e.Decision == event.Blocked })
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
	if c, err := l.tunnel(at("a.test", port)); err != nil || echo(c) {
		t.Errorf("unrecorded, and yet it passes (%v)", err)
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

type sinkFunc func(event.Event) error

func (f sinkFunc) Emit(e event.Event) error { return f(e) }

// A person at the launcher is asked about what no rule of the session covers,
// and cannot lift the ceiling.
func TestAsk(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), "=a.test=127.0.0.1"), nil)
	o := offer("one", doc("=a.test=127.0.0.1", "=b.test=127.0.0.1"))
	yes := true
	o.Ask = func(_ context.Context, r policy.Request, dec policy.Decision) bool {
		if r.Port != port || dec.Reason != policy.ReasonHostNotListed {
			t.Errorf("asked about %+v, %+v", r, dec)
		}
		return yes
	}
	l := d.join(t, o)
	if c, err := l.tunnel(at("a.test", port)); err != nil || !echo(c) {
		t.Errorf("a yes: %v", err)
	}
	if _, err := l.tunnel(at("b.test", port)); err == nil || !strings.Contains(err.Error(), "outside_ceiling") {
		t.Errorf("a yes to what the ceiling denies: %v", err)
	}
	yes = false
	if _, err := l.tunnel(at("a.test", port)); err == nil || !strings.Contains(err.Error(), "not_approved") {
		t.Errorf("a no: %v", err)
	}
}

// A session ends although a question stands.
func TestQuestionAtTheEnd(t *testing.T) {
	port := origin(t)
	d := serve(t, doc(at("a.test", port), "=a.test=127.0.0.1"), nil)
	o := offer("one", doc("=a.test=127.0.0.1"))
	asked := make(chan struct{})
	o.Ask = func(ctx context.Context, _ policy.Request, _ policy.Decision) bool {
		close(asked)
		<-ctx.Done()
		return true
	}
	l := d.join(t, o)
	passed := make(chan bool, 1)
	go func() {
		c, err := l.tunnel(at("a.test", port))
		passed <- err == nil && echo(c)
	}()
	<-asked
	l.leave()
	if <-passed {
		t.Error("a question that nobody answered is a yes")
	}
	d.record.wait(t, "the end", ofType(event.SessionClosed))
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

// Requests are judged by path whichever of the two policies asks for it; the
// launcher trusts the daemon's authority for this session, and the origin must
// satisfy the daemon.
func TestIntercepted(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) }))
	t.Cleanup(origin.Close)
	port := netip.MustParseAddrPort(origin.Listener.Addr().String()).Port()
	path := fmt.Sprintf("GET https://example.com:%d/ok/**", port)
	whole := at("example.com", port)
	for name, tt := range map[string]struct {
		own, ceiling []string
		denied       string
	}{
		"the session's rule": {[]string{path}, []string{whole}, "path_not_listed"},
		"the ceiling's rule": {[]string{whole}, []string{path}, "outside_ceiling"},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AddCert(origin.Certificate())
			d := serve(t, doc(append(tt.ceiling, "=example.com=127.0.0.1")...), func(s *Server) { s.RootCAs = roots })
			l := d.join(t, offer("one", doc(append(tt.own, "=example.com=127.0.0.1")...)))
			trust := x509.NewCertPool()
			if !trust.AppendCertsFromPEM(l.Bundle()) {
				t.Fatal("no authority came back")
			}
			client := &http.Client{Timeout: patience, Transport: &http.Transport{
				Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: l.proxy}),
				TLSClientConfig: &tls.Config{RootCAs: trust},
			}}
			defer client.CloseIdleConnections()
			for path, want := range map[string]string{"/ok/x": "/ok/x", "/no": tt.denied} {
				resp, err := client.Get(fmt.Sprintf("https://%s%s", whole, path))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !strings.Contains(string(body), want) {
					t.Errorf("%s: %s (%v)", path, body, err)
				}
			}
		})
	}
}
