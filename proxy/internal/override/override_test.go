package override

import (
	"net/http"
	"slices"
	"testing"

	"egressd/policy"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name, field, value, query string
		want                      policy.Head
	}{
		{name: "nothing", field: "X-Request-Id", value: "DELETE", query: "?a=b%20"},
		{name: "a method", field: "X-Http-Method-Override", value: " DELETE ", want: policy.Head{Methods: []string{"DELETE"}}},
		{name: "as CGI reads it", field: "X_http_method_override", value: "DELETE", want: policy.Head{Methods: []string{"DELETE"}}},
		{name: "a path", field: "X-Original-Url", value: "/admin?x", want: policy.Head{Paths: []string{"/admin?x"}}},
		{name: "a URL", field: "X-Rewrite-Url", value: "https://h.test/admin", want: policy.Head{Paths: []string{"/admin"}, Hosts: []string{"h.test"}}},
		{name: "a URL without a path", field: "X-Rewrite-Url", value: "https://h.test", want: policy.Head{Paths: []string{"/"}, Hosts: []string{"h.test"}}},
		{name: "a prefix", field: "X-Forwarded-Prefix", value: "/admin", want: policy.Head{Paths: []string{"/admin/**"}}},
		{name: "no prefix", field: "X-Forwarded-Prefix", value: "/"},
		{name: "hosts", field: "X-Forwarded-Host", value: "a.test, b.test:8", want: policy.Head{Hosts: []string{"a.test", "b.test:8"}}},
		{name: "RFC 7239", field: "Forwarded", value: `for=1.2.3.4;Host="a.test", host=b.test`, want: policy.Head{Hosts: []string{"a.test", "b.test"}}},
		{name: "hops", field: "Max-Forwards", value: "0", want: policy.Head{Hops: true}},
		{name: "the query", query: "?a=1&_method=delete", want: policy.Head{Methods: []string{"delete"}}},
		{name: "encoded", query: "?%5fmetho%64=PUT", want: policy.Head{Methods: []string{"PUT"}}},
		{name: "as PHP reads it", query: "?+.method[]=PUT", want: policy.Head{Methods: []string{"PUT"}}},
		{name: "another parameter", query: "?method=PUT&x_method=PUT"},
	} {
		h := http.Header{}
		if tt.field != "" {
			h[tt.field] = []string{tt.value}
		}
		var got policy.Head
		Find(&got, h, tt.query)
		if !slices.Equal(got.Methods, tt.want.Methods) || !slices.Equal(got.Paths, tt.want.Paths) || !slices.Equal(got.Hosts, tt.want.Hosts) || got.Hops != tt.want.Hops {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
