package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"egressd/policy"
)

// secretWorth is what must never be seen inside or in an event.
const secretWorth = "sk-real-value"

func TestSecrets(t *testing.T) {
	origin, _ := policy.ParseHost("origin.test")
	seen := make(chan http.Header, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Header.Set("X-Body", string(b))
		r.Header.Set("X-Uri", r.RequestURI)
		seen <- r.Header
	}
	secrets := []policy.Secret{{Env: "TOKEN", Header: "authorization", Hosts: []policy.Host{origin}}}
	g := tlsGate(t, h, secrets, "origin.test", "other.test")
	req, _ := http.NewRequest("POST", "https://origin.test/?t=placeholder-TOKEN", strings.NewReader("placeholder-TOKEN"))
	req.Header.Set("Authorization", "Bearer placeholder-TOKEN")
	req.Header.Set("X-Other", "placeholder-TOKEN")
	resp, err := g.httpsClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := <-seen
	equal(t, "the named field", got.Get("Authorization"), "Bearer "+secretWorth)
	equal(t, "another field", got.Get("X-Other"), "placeholder-TOKEN")
	equal(t, "the body", got.Get("X-Body"), "placeholder-TOKEN")
	equal(t, "the query", got.Get("X-Uri"), "/?t=placeholder-TOKEN")
	for _, e := range g.events.all {
		if strings.Contains(fmt.Sprintf("%+v", e), secretWorth) || strings.Contains(fmt.Sprintf("%+v", e), "placeholder") {
			t.Errorf("event holds a secret: %+v", e)
		}
	}
}

func TestSecretsGoNowhereElse(t *testing.T) {
	origin, _ := policy.ParseHost("origin.test")
	other, _ := policy.ParseHost("other.test")
	p, err := policy.Compile(&policy.Document{
		Allow:   []policy.Entry{{Text: "origin.test"}, {Text: "other.test"}},
		Secrets: []policy.Secret{{Env: "TOKEN", Header: "X-Key", Hosts: []policy.Host{origin}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Interception: Interception{SecretValue: func(string) (string, string, bool) { return "ph", "worth", true }}}
	for _, tt := range []struct {
		name   string
		host   policy.Host
		tls    bool
		header string
		want   string
	}{
		{"named", origin, true, "X-Key", "worth"},
		{"another host", other, true, "X-Key", "ph"},
		{"another field", origin, true, "X-Yek", "ph"},
		{"in the clear", origin, false, "X-Key", "ph"},
	} {
		h := http.Header{tt.header: {"ph"}}
		s.substitute(p, policy.Request{Host: tt.host, Port: 443}, h, tt.tls)
		equal(t, tt.name, h.Get(tt.header), tt.want)
	}
}
