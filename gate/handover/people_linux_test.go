package handover

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
)

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
	d.record.wait(t, "the end", ofType("session.closed"))
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
