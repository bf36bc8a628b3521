package proxy

import (
	"net/http"
	"strings"
	"testing"
)

// Threat: a request that a rule allows asks the origin, in a field or the query, for
// what a rule denies.
func TestOverrides(t *testing.T) {
	g := tlsGate(t, func(http.ResponseWriter, *http.Request) {}, nil, "GET,POST https://origin.test/v1/**", "other.test")
	for _, tt := range []struct{ url, field, value, reason string }{
		{"https://origin.test/v1/a?x=1", "X-Request-Id", "DELETE", ""},
		{"https://origin.test/v1/a", "X-Http-Method-Override", "POST", ""},
		{"https://origin.test/v1/a", "X-Http-Method-Override", "DELETE", "override_refused"},
		{"https://origin.test/v1/a", "X_http_method_override", "DELETE", "override_refused"},
		{"https://origin.test/v1/a", "X-Original-Url", "/admin", "override_refused"},
		{"https://origin.test/v1/a", "X-Forwarded-Prefix", "/admin", "override_refused"},
		{"https://origin.test/v1/a", "X-Forwarded-Host", "origin.test", ""},
		{"https://origin.test/v1/a", "X-Forwarded-Host", "other.test", "override_refused"},
		{"https://origin.test/v1/a?_method=DELETE", "X-Request-Id", "1", "override_refused"},
	} {
		req, err := http.NewRequest(http.MethodPost, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header[tt.field] = []string{tt.value}
		resp, err := g.httpsClient(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		equal(t, tt.url+" "+tt.field+": "+tt.value, resp.Header.Get("X-Egressd-Reason"), tt.reason)
		if all := strings.Join(g.events.decisions(), "\n"); tt.reason != "" && !strings.Contains(all, tt.reason) {
			t.Errorf("not told: %s", all)
		}
	}
}
