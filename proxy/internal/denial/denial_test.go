package denial

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"egressd/policy"
)

// RFC 9209 section 2.3.
var proxyErrorTypes = map[string]bool{
	"dns_timeout": true, "dns_error": true, "destination_not_found": true, "destination_unavailable": true,
	"destination_ip_prohibited": true, "connection_refused": true, "connection_terminated": true,
	"connection_timeout": true, "connection_limit_reached": true, "tls_certificate_error": true,
	"http_request_error": true, "http_request_denied": true, "proxy_internal_error": true, "proxy_loop_detected": true,
}

// Every reason is told in a status of its class, a registered error type and
// words.
func TestDenialTableIsTotal(t *testing.T) {
	status := map[policy.Class]int{
		policy.ClassMalformed: 400, policy.ClassDenied: 403, policy.ClassUpstream: 502,
		policy.ClassTimeout: 504, policy.ClassOverload: 503, policy.ClassBug: 500, policy.ClassNone: 500,
	}
	for r := policy.Reason(0); r.String() != "unknown_reason"; r++ {
		w := textOf(r)
		want := status[r.Class()]
		switch r {
		case policy.ReasonHeadTimeout:
			want = http.StatusRequestTimeout // the client's time, not the origin's
		case policy.ReasonNotAuthenticated:
			want = http.StatusProxyAuthRequired
		}
		if w.status != want || w.words == "" || w.words == "a reason that has no words" || !proxyErrorTypes[w.token] {
			t.Errorf("%v (%v): %+v", r, r.Class(), w)
		}
	}
}

func TestDenialIsWellFormed(t *testing.T) {
	host, err := policy.ParseHost("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	nasty := "a\"b\\c\r\nX-Evil: 1\r\n\r\n<script>\x00\xff" + strings.Repeat("x", 1000)
	for r := policy.Reason(0); r.String() != "unknown_reason"; r++ {
		d := Response{
			Request:  policy.Request{Host: host, Port: 443, Method: "GET", Path: "/" + nasty},
			Decision: policy.Decision{Reason: r, Rule: &policy.Rule{Text: nasty}}, Detail: nasty,
		}
		for _, method := range []string{"GET", "HEAD", "CONNECT"} {
			raw := d.append(nil, method == "HEAD")
			br := bufio.NewReader(bytes.NewReader(raw))
			resp, err := http.ReadResponse(br, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("%v %s: %v in %q", r, method, err, raw)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatalf("%v %s: %v", r, method, err)
			}
			if rest, _ := io.ReadAll(br); len(rest) > 0 {
				t.Errorf("%v %s: %d bytes behind the response", r, method, len(rest))
			}
			if resp.Header.Get("X-Evil") != "" || bytes.ContainsFunc(body, forbiddenInBody) {
				t.Errorf("%v: reflects the client: %q", r, raw)
			}
			if method == "HEAD" && (len(body) > 0 || resp.ContentLength <= 0) {
				t.Errorf("%v HEAD: %d bytes, Content-Length %d", r, len(body), resp.ContentLength)
			}
		}
	}
}

func TestDenialNamesTheFlag(t *testing.T) {
	host, _ := policy.ParseHost("api.example.com")
	for _, tt := range []struct {
		name string
		req  policy.Request
		dec  policy.Decision
		want string
	}{
		{"host", policy.Request{Host: host, Port: 443}, policy.Decision{Reason: policy.ReasonHostNotListed}, "--allow api.example.com\n"},
		{"port", policy.Request{Host: host, Port: 22}, policy.Decision{Reason: policy.ReasonPortNotListed}, "--allow api.example.com:22\n"},
		{"path", policy.Request{Host: host, Port: 443, Method: "GET", Path: "/v2"}, policy.Decision{Reason: policy.ReasonPathNotListed}, "--allow 'GET https://api.example.com/v2'\n"},
		{"deny rule", policy.Request{Host: host, Port: 443}, policy.Decision{Reason: policy.ReasonDeniedByRule, Rule: &policy.Rule{Text: "*.example.com"}}, "Rule: deny *.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := Response{Request: tt.req, Decision: tt.dec}.body()
			if !strings.Contains(body, tt.want) || !strings.Contains(body, "api.example.com:") || strings.Count(body, "\n") > 5 {
				t.Errorf("body %q does not hold %q", body, tt.want)
			}
		})
	}
}

func TestDenialNamesTheDaemonsPolicy(t *testing.T) {
	host, _ := policy.ParseHost("api.example.com")
	body := Response{
		Request: policy.Request{Host: host, Port: 443, Method: "GET", Path: "/v2"}, Decision: policy.Decision{Reason: policy.ReasonPathNotListed}, Policy: "ci",
	}.body()
	_, list, _ := strings.Cut(body, `policy "ci":`)
	doc, err := policy.ParseFile("policy.yaml", []byte("allow:"+list))
	if err != nil || len(doc.Allow) != 1 || doc.Allow[0].Text != "GET https://api.example.com/v2" || strings.Contains(body, "--allow") {
		t.Errorf("body %q gives no line that can be put into a policy file: %v", body, err)
	}
}

func TestSFString(t *testing.T) {
	if got, want := sfString(`a"b\c`), `"a\"b\\c"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// forbiddenInBody reports what must never be echoed: markup, control bytes, and
// what is not UTF-8.
func forbiddenInBody(r rune) bool {
	return r == '<' || r == '>' || r == '\x00' || r == '\r' || r == utf8.RuneError
}
