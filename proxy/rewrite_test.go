package proxy

import (
	"net/http"
	"testing"
)

// A Rewriter changes what leaves over intercepted TLS, after the secrets are in
// their places and whatever the client sent.
func TestRewrite(t *testing.T) {
	seen := make(chan *http.Request, 1)
	g := tlsGate(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r }, nil, "* https://origin.test/**")
	g.s.Rewrite = func(host string, r *http.Request) {
		r.Header.Set("X-Host", host)
		r.Header.Set("Authorization", "Bearer mine")
		r.Host = "other.test"
	}
	req, _ := http.NewRequest(http.MethodGet, "https://origin.test/", nil)
	req.Header.Set("Authorization", "Bearer theirs")
	resp, err := g.httpsClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := <-seen
	equal(t, "host", got.Host, "other.test")
	equal(t, "what the rewriter is told", got.Header.Get("X-Host"), "origin.test")
	equal(t, "the client's own", got.Header.Get("Authorization"), "Bearer mine")
}
