package denial

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
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
			phrase := strings.TrimPrefix(resp.Status, strconv.Itoa(resp.StatusCode)+" ")
			if phrase != d.Phrase() || len(phrase) > maxPhraseBytes || len(phrase) < 10 || strings.ContainsFunc(phrase, notPrintable) {
				t.Errorf("%v: reason phrase %q", r, phrase)
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
			body := string(Response{Request: tt.req, Decision: tt.dec}.body())
			if !strings.Contains(body, tt.want) || !strings.Contains(body, "api.example.com:") || strings.Count(body, "\n") > 5 {
				t.Errorf("body %q does not hold %q", body, tt.want)
			}
		})
	}
}

func TestDenialNamesTheDaemonsPolicy(t *testing.T) {
	host, _ := policy.ParseHost("api.example.com")
	body := string(Response{
		Request: policy.Request{Host: host, Port: 443, Method: "GET", Path: "/v2"}, Decision: policy.Decision{Reason: policy.ReasonPathNotListed}, Policy: "ci",
	}.body())
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

func notPrintable(r rune) bool { return r < ' ' || r > '~' }

func TestPhraseNamesTheRule(t *testing.T) {
	host, _ := policy.ParseHost("api.example.com")
	long, _ := policy.ParseHost(strings.Repeat(strings.Repeat("a", 60)+".", 4) + "example")
	notListed := policy.Decision{Reason: policy.ReasonHostNotListed}
	path := policy.Decision{Reason: policy.ReasonPathNotListed}
	for _, tt := range []struct {
		name string
		d    Response
		want string
	}{
		{"host", Response{Request: policy.Request{Host: host, Port: 443}, Decision: notListed}, "Blocked by egressd: api.example.com:443: no rule allows this host; ask the user for --allow api.example.com"},
		{"port", Response{Request: policy.Request{Host: host, Port: 5432}, Decision: policy.Decision{Reason: policy.ReasonPortNotListed}}, "Blocked by egressd: api.example.com:5432: this host is allowed, but not on this port; ask the user for --allow api.example.com:5432"},
		{"daemon", Response{Request: policy.Request{Host: host, Port: 443}, Decision: notListed, Policy: "ci"}, `Blocked by egressd: api.example.com:443: no rule allows this host; ask whoever runs egressd to allow api.example.com in its policy "ci"`},
		{"failure", Response{Request: policy.Request{Host: host, Port: 443}, Decision: policy.Decision{Reason: policy.ReasonRefused}}, "Bad Gateway: egressd: api.example.com:443: the origin refused the connection"},
		{"no half rule", Response{Request: policy.Request{Host: host, Port: 443, Method: "GET", Path: "/" + strings.Repeat("x", 500)}, Decision: path}, "Blocked by egressd: api.example.com:443: this host is allowed, but not this path"},
		{"no other rule", Response{Request: policy.Request{Host: host, Port: 443, Method: "GET", Path: "/a&b"}, Decision: path}, "Blocked by egressd: api.example.com:443: this host is allowed, but not this path"},
		{"long name", Response{Request: policy.Request{Host: long, Port: 443}, Decision: notListed}, "Blocked by egressd: " + long.String() + ":443: no rule allows this host"},
		{"no raw rule", Response{Request: policy.Request{Host: host, Port: 443}, Decision: policy.Decision{Reason: policy.ReasonNotTLS}}, "Blocked by egressd: api.example.com:443: port 443 is for TLS, and this is not TLS"},
	} {
		if got := tt.d.Phrase(); got != tt.want {
			t.Errorf("%s: got\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// The message has the framing of RFC 4253 section 6: blocks of 8 bytes, at least 4
// of padding, and strings that end where they say.
func TestSSH(t *testing.T) {
	for n := range 20 {
		d := Response{Decision: policy.Decision{Reason: policy.ReasonHostNotListed}, Detail: "x" + strings.Repeat("y", n)}
		rest, ok := bytes.CutPrefix(d.SSH(), []byte("SSH-2.0-egressd\r\n"))
		if !ok || len(rest)%8 != 0 || int(binary.BigEndian.Uint32(rest)) != len(rest)-4 || rest[4] < 4 {
			t.Fatalf("%d: framing of %q", n, rest)
		}
		payload := rest[5 : len(rest)-int(rest[4])]
		words := d.Phrase()
		want := "\x01\x00\x00\x00\x01\x00\x00\x00" + string(rune(len(words))) + words + "\x00\x00\x00\x00"
		if string(payload) != want {
			t.Errorf("%d: payload %q, want %q", n, payload, want)
		}
	}
}
