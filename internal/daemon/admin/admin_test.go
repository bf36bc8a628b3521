package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestPages(t *testing.T) {
	var st state
	s := &Server{
		Ready: st.ready, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 1\n") }),
		Unused: func() []string { return []string{"policy default: allow a.example.com (p.yaml:2:5)"} },
	}
	tcp, local := serve(t, s)
	for _, addr := range []string{tcp, local} {
		st.reason.Store("")
		for _, tt := range []struct {
			request string
			code    int
			body    string
		}{
			{get("/", "localhost"), 200, index},
			{get("/healthz", "localhost"), 200, "ok\n"},
			{get("/healthz?x=1", "localhost"), 200, "ok\n"},
			{get("/readyz", "localhost"), 200, "ready\n"},
			{get("/metrics", "localhost"), 200, "metric 1\n"},
			{get("/rules/unused", "localhost"), 200, "policy default: allow a.example.com (p.yaml:2:5)\n"},
			{get("/healthz/", "localhost"), 404, "no such page: see /\n"},
			{get("/debug/pprof/", "localhost"), 404, "no such page: see /\n"},
			{get("/../healthz", "localhost"), 404, "no such page: see /\n"},
			{"HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, ""},
			{"POST /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405, "GET and HEAD only\n"},
			{"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "GET and HEAD only\n"},
			{"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n", 405, "GET and HEAD only\n"},
			{"GET http://example.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 0, ""}, // no proxy: see below
		} {
			code, h, body := ask(t, addr, tt.request)
			if tt.code == 0 { // the Host is that of the URL
				if addr == tcp && code != http.StatusMisdirectedRequest {
					t.Errorf("%s: %q: %d", addr, tt.request, code)
				}
				continue
			}
			if code != tt.code || body != tt.body {
				t.Errorf("%s: %q: %d %q, want %d %q", addr, tt.request, code, body, tt.code, tt.body)
			}
			if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %q: header %v", addr, tt.request, h)
			}
		}
		st.reason.Store("draining\r\nX-Evil: 1\x1b[31m")
		code, h, body := ask(t, addr, get("/readyz", "localhost"))
		if code != 503 || body != "not ready: draining  X-Evil: 1 [31m\n" || h.Get("X-Evil") != "" {
			t.Errorf("%d %q %v", code, body, h)
		}
		if code, _, _ := ask(t, addr, get("/healthz", "localhost")); code != 200 {
			t.Errorf("a daemon that is not ready is not alive: %d", code)
		}
	}
}

// The zero Server is alive, not ready, and shows nothing.
func TestZeroServer(t *testing.T) {
	tcp, _ := serve(t, new(Server))
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 404} {
		if code, _, _ := ask(t, tcp, get(path, "localhost")); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// Rules are told to clients on this machine alone, and nobody knows them where there
// are none.
func TestRulesStayHere(t *testing.T) {
	told := func() []string { return []string{"policy team-a: allow secret.example.com"} }
	for _, tt := range []struct {
		unused func() []string
		near   bool
		code   int
		body   string
	}{
		{told, true, 200, "policy team-a: allow secret.example.com\n"},
		{told, false, 403, "rules are told on this machine only: ask on the loopback, or at a socket (--admin unix:PATH)\n"},
		{func() []string { return nil }, true, 200, "every rule has been used\n"},
		{nil, true, 404, "no rules here\n"},
	} {
		w := httptest.NewRecorder()
		(&Server{Unused: tt.unused}).route(w, httptest.NewRequest(http.MethodGet, "/rules/unused", nil), tt.near)
		if w.Code != tt.code || w.Body.String() != tt.body {
			t.Errorf("near %v: %d %q, want %d %q", tt.near, w.Code, w.Body, tt.code, tt.body)
		}
	}
}
