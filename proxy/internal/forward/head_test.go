package forward

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestHeadRefuses puts what splits a head into each of its places.
func TestHeadRefuses(t *testing.T) {
	for _, bad := range []string{"\r\nX: y", "\n", "\r", "\x00", "\x7f"} {
		for name, change := range map[string]func(x *exchange, out *http.Request){
			"path":    func(x *exchange, _ *http.Request) { x.Path += bad },
			"query":   func(x *exchange, _ *http.Request) { x.Query += bad },
			"host":    func(x *exchange, _ *http.Request) { x.HostField += bad },
			"name":    func(_ *exchange, out *http.Request) { out.Header["X"+bad] = []string{"v"} },
			"value":   func(_ *exchange, out *http.Request) { out.Header["X"] = []string{"v" + bad} },
			"trailer": func(_ *exchange, out *http.Request) { out.Trailer = http.Header{"X" + bad: nil} },
		} {
			x := &exchange{Exchange: Exchange{Path: "/", HostField: "origin.test"}}
			out := &http.Request{Method: "GET", Header: http.Header{"A": {"b"}}, ContentLength: -1}
			if b, err := x.appendHead(nil, out); err != nil || !strings.HasSuffix(string(b), "\r\n\r\n") {
				t.Fatal(string(b), err)
			}
			change(x, out)
			if b, err := x.appendHead(nil, out); !errors.Is(err, errUnsendable) {
				t.Errorf("%s with %q: %q", name, bad, b)
			}
		}
	}
}

// TestHeadTarget says what the target of a request is.
func TestHeadTarget(t *testing.T) {
	for _, tt := range []struct {
		path, query string
		absolute    bool
		want        string
	}{
		{"/a//b/../%2f", "?", false, "/a//b/../%2f?"},
		{"//x/y", "?q=1", false, "//x/y?q=1"},
		{"*", "", false, "*"},
		{"/a", "?q", true, "http://origin.test:81/a?q"},
		{"//x", "", true, "http://origin.test:81//x"},
		{"*", "", true, "http://origin.test:81"},
	} {
		x := &exchange{Exchange: Exchange{Path: tt.path, Query: tt.query, Absolute: tt.absolute, HostField: "origin.test:81"}}
		b, err := x.appendHead(nil, &http.Request{Method: "OPTIONS"})
		if want := "OPTIONS " + tt.want + " HTTP/1.1\r\nHost: origin.test:81\r\n\r\n"; string(b) != want || err != nil {
			t.Errorf("%q, %v, want %q", b, err, want)
		}
	}
}
