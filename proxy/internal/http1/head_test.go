package http1

import (
	"strings"
	"testing"
)

func TestParseHeadRefuses(t *testing.T) {
	const ok = "Host: a.example\r\n"
	tests := []struct {
		name, head string
		status     int
		detail     string // part of it
	}{
		{"http/0.9", "GET /\r\n\r\n", 400, "request line"},
		{"two spaces", "GET  / HTTP/1.1\r\n" + ok + "\r\n", 400, "request line"},
		{"tab for a space", "GET\t/\tHTTP/1.1\r\n" + ok + "\r\n", 400, "request line"},
		{"trailing space", "GET / HTTP/1.1 \r\n" + ok + "\r\n", 400, "request line"},
		{"method is no token", "G(T / HTTP/1.1\r\n" + ok + "\r\n", 400, "method"},
		{"no method", " / HTTP/1.1\r\n" + ok + "\r\n", 400, "method is not"},
		{"prior knowledge", "PRI * HTTP/2.0\r\n\r\n", 400, "prior knowledge"},
		{"lower-case version", "GET / http/1.1\r\n" + ok + "\r\n", 400, "version"},
		{"version 1.2", "GET / HTTP/1.2\r\n" + ok + "\r\n", 400, "version"},
		{"fragment", "GET /#x HTTP/1.1\r\n" + ok + "\r\n", 400, "fragment"},
		{"backslash", "GET /a\\b HTTP/1.1\r\n" + ok + "\r\n", 400, "percent-encoded"},
		{"byte above ASCII", "GET /\xff HTTP/1.1\r\n" + ok + "\r\n", 400, "percent-encoded"},
		{"nul in the target", "GET /\x00 HTTP/1.1\r\n" + ok + "\r\n", 400, "percent-encoded"},
		{"userinfo", "GET http://u:p@a.example/ HTTP/1.1\r\n" + ok + "\r\n", 400, "user name"},
		{"no host in the URL", "GET http:///x HTTP/1.1\r\n" + ok + "\r\n", 400, "names no host"},
		{"ftp", "GET ftp://a.example/ HTTP/1.1\r\n" + ok + "\r\n", 400, "scheme"},
		{"relative path", "GET x HTTP/1.1\r\n" + ok + "\r\n", 400, "neither"},
		{"star without OPTIONS", "GET * HTTP/1.1\r\n" + ok + "\r\n", 400, "OPTIONS"},
		{"CONNECT with a path", "CONNECT /x HTTP/1.1\r\n" + ok + "\r\n", 400, "CONNECT"},
		{"CONNECT with a body", "CONNECT a:443 HTTP/1.1\r\n" + ok + "Content-Length: 1\r\n\r\n", 400, "CONNECT"},

		{"bad percent-encoding", "GET /%zz HTTP/1.1\r\n" + ok + "\r\n", 400, "valid URI"},
		{"bracketed name", "GET http://[a.example]/ HTTP/1.1\r\n" + ok + "\r\n", 400, "valid URI"},

		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, "no Host"},
		{"two hosts", "GET / HTTP/1.1\r\n" + ok + "Host: b.example\r\n\r\n", 400, "more than one Host"},
		{"two equal hosts", "GET / HTTP/1.1\r\n" + ok + ok + "\r\n", 400, "more than one Host"},
		{"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400, "Host is not"},
		{"host list", "GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n", 400, "Host is not"},
		{"host with a path", "GET / HTTP/1.1\r\nHost: a.example/b\r\n\r\n", 400, "Host is not"},
		{"host with userinfo", "GET / HTTP/1.1\r\nHost: u@a.example\r\n\r\n", 400, "Host is not"},
		{"host in capitals twice", "GET / HTTP/1.1\r\nHOST: a.example\r\nhost: a.example\r\n\r\n", 400, "more than one Host"},

		{"space before the colon", "GET / HTTP/1.1\r\nHost : a.example\r\n\r\n", 400, "field name"},
		{"fold", "GET / HTTP/1.1\r\n" + ok + "X: a\r\n b\r\n\r\n", 400, "folded"},
		{"fold as the first field", "GET / HTTP/1.1\r\n X: a\r\n" + ok + "\r\n", 400, "folded"},
		{"no colon", "GET / HTTP/1.1\r\n" + ok + "X\r\n\r\n", 400, "colon"},
		{"nul in a value", "GET / HTTP/1.1\r\n" + ok + "X: a\x00b\r\n\r\n", 400, "control"},
		{"bare CR in a value", "GET / HTTP/1.1\r\n" + ok + "X: a\rb\r\n\r\n", 400, "CR"},
		{"bare LF", "GET / HTTP/1.1\n" + ok + "\r\n", 400, "LF"},
		{"bare LF in a field", "GET / HTTP/1.1\r\n" + ok + "X: a\n\r\n", 400, "LF"},
		{"control in a name", "GET / HTTP/1.1\r\n" + ok + "X\x01: a\r\n\r\n", 400, "field name"},

		{"length and encoding", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"},
		{"two lengths", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, "more than one Content-Length"},
		{"two equal lengths", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", 400, "more than one Content-Length"},
		{"length list", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 3, 3\r\n\r\n", 400, "decimal"},
		{"length with a plus", "POST / HTTP/1.1\r\n" + ok + "Content-Length: +3\r\n\r\n", 400, "decimal"},
		{"negative length", "POST / HTTP/1.1\r\n" + ok + "Content-Length: -3\r\n\r\n", 400, "decimal"},
		{"hex length", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 0x3\r\n\r\n", 400, "decimal"},
		{"length with a space", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 1 2\r\n\r\n", 400, "decimal"},
		{"empty length", "POST / HTTP/1.1\r\n" + ok + "Content-Length:\r\n\r\n", 400, "decimal"},
		{"huge length", "POST / HTTP/1.1\r\n" + ok + "Content-Length: 99999999999999999999\r\n\r\n", 400, "decimal"},
		{"gzip, chunked", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", 400, "exactly"},
		{"identity", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: identity\r\n\r\n", 400, "exactly"},
		{"xchunked", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: xchunked\r\n\r\n", 400, "exactly"},
		{"chunked with a vertical tab", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: \vchunked\r\n\r\n", 400, "control"},
		{"two encodings", "POST / HTTP/1.1\r\n" + ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "more than one Transfer"},
		{"encoding in 1.0", "POST / HTTP/1.0\r\n" + ok + "Transfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0"},
		{"trailer that frames", "POST / HTTP/1.1\r\n" + ok + "Trailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "Trailer"},
		{"strange expectation", "POST / HTTP/1.1\r\n" + ok + "Expect: gold\r\n\r\n", 417, "Expect"},
		{"bytes behind", "GET / HTTP/1.1\r\n" + ok + "\r\nX", 400, "empty line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ParseHead([]byte(tt.head))
			if r.Err == nil {
				t.Fatalf("accepted: %+v", r)
			}
			if r.Err.Status != tt.status || !strings.Contains(r.Err.Detail, tt.detail) {
				t.Errorf("got %d %q, want %d ...%s...", r.Err.Status, r.Err.Detail, tt.status, tt.detail)
			}
		})
	}
}

func TestParseHeadAccepts(t *testing.T) {
	tests := []struct {
		name, head string
		want       Request
	}{
		{
			"origin", "GET /a%2Fb//c?x=%20 HTTP/1.1\r\nHost: a.example:80\r\n\r\n",
			Request{Method: "GET", Form: FormOrigin, Minor: 1, Path: "/a%2Fb//c", Query: "?x=%20", Fields: Fields{Host: "a.example:80", HasHost: true}},
		},
		{
			"absolute", "GET HTTP://A.example?q HTTP/1.1\r\nHost: a.example\r\n\r\n",
			Request{Method: "GET", Form: FormAbsolute, Scheme: "http", Authority: "A.example", Minor: 1, Path: "/", Query: "?q", Fields: Fields{Host: "a.example", HasHost: true}},
		},
		{
			"https", "GET https://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n",
			Request{Method: "GET", Form: FormAbsolute, Scheme: "https", Authority: "a.example", Minor: 1, Path: "/x", Fields: Fields{Host: "a.example", HasHost: true}},
		},
		{
			"options of a server", "OPTIONS http://a.example HTTP/1.1\r\nHost: a.example\r\n\r\n",
			Request{Method: "OPTIONS", Form: FormAbsolute, Scheme: "http", Authority: "a.example", Minor: 1, Path: "*", Fields: Fields{Host: "a.example", HasHost: true}},
		},
		{"1.0 without host", "GET / HTTP/1.0\r\n\r\n", Request{Method: "GET", Form: FormOrigin, Path: "/"}},
		{
			"upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n",
			Request{Method: "GET", Form: FormOrigin, Minor: 1, Path: "/", Fields: Fields{Host: "a", HasHost: true, Upgrade: true}},
		},
		{
			"obs-text in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: \xe9\r\n\r\n",
			Request{Method: "GET", Form: FormOrigin, Minor: 1, Path: "/", Fields: Fields{Host: "a", HasHost: true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ParseHead([]byte(tt.head))
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			r.Target, r.HeadBytes, r.body = "", 0, body{}
			got := r
			got.Head = nil
			if got.Method != tt.want.Method || got.Form != tt.want.Form || got.Scheme != tt.want.Scheme ||
				got.Authority != tt.want.Authority || got.Minor != tt.want.Minor || got.Path != tt.want.Path ||
				got.Query != tt.want.Query || got.Host != tt.want.Host || got.HasHost != tt.want.HasHost || got.Upgrade != tt.want.Upgrade {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestConnectKeepsItsHead(t *testing.T) {
	const head = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"
	if r := ParseHead([]byte(head)); r.Err != nil || string(r.Head) != head || r.Authority != "a.example:443" {
		t.Errorf("got %+v", r)
	}
}

// tokenByte is the list of RFC 9110 section 5.6.2.
func TestTokenByte(t *testing.T) {
	const tchar = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range 256 {
		if got, want := tokenByte(byte(c)), strings.IndexByte(tchar, byte(c)) >= 0; got != want {
			t.Errorf("%q: %v", rune(c), got)
		}
	}
}
