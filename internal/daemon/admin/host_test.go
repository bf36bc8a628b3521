package admin

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHost(t *testing.T) {
	tcp, local := serve(t, new(Server))
	for host, want := range map[string]bool{
		"127.0.0.1:3131": true, "10.1.2.3": true, "[::1]:3131": true, "[::1]": true, "localhost": true, "LOCALHOST:3131": true, "localhost.": true,
		"egressd:3131": true, "x.localhost": true,
		"egressd.agents.svc": true, "egressd.agents.svc.cluster.local:3131": true, "host.internal": true,
		"evil.example.com": false, "evil.example.com:3131": false, "127.0.0.1.evil.example.com": false, "localhost.evil.example.com": false,
		"gate.example.com": false, "gate.internal.evil.example.com": false, "evillocal.example": false, "internal.example.com": false, "0x7f.1": false,
	} {
		code, _, _ := ask(t, tcp, get("/healthz", host))
		if got := code == 200; got != want || !want && code != http.StatusMisdirectedRequest {
			t.Errorf("Host %s: %d, want allowed %v", host, code, want)
		}
		if code, _, _ := ask(t, local, get("/healthz", host)); code != 200 {
			t.Errorf("Host %s on a socket file, which no page reaches: %d", host, code)
		}
	}
	if code, _, _ := ask(t, tcp, "GET /healthz HTTP/1.0\r\n\r\n"); code != http.StatusMisdirectedRequest {
		t.Errorf("no Host: %d", code)
	}
}

// What listens for a network is asked by the names of that network.
func TestHostOfNetwork(t *testing.T) {
	for local, want := range map[string]int{"127.0.0.1": http.StatusMisdirectedRequest, "::1": http.StatusMisdirectedRequest, "192.0.2.1": 200, "": http.StatusMisdirectedRequest} {
		r := httptest.NewRequest("GET", "http://gate.example.net:3131/healthz", nil)
		if ip := net.ParseIP(local); ip != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: ip, Port: 3131}))
		}
		w := httptest.NewRecorder()
		new(Server).handler(false).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("on %q: %d, want %d", local, w.Code, want)
		}
	}
}
