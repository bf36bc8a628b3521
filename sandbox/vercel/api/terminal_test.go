package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// An answer that leads keys and variables elsewhere, or in the clear, is not
// followed, and the terminal's token is in no error.
func TestTerminalElsewhere(t *testing.T) {
	var visits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer other.Close()
	host := strings.TrimPrefix(other.URL, "http://")
	var names atomic.Value
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/interactive") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"url":%q,"token":"the-terminal+token"}`, names.Load())
			return
		}
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer api.Close()
	open := func(base, at string) error {
		names.Store(at)
		c := &Client{BaseURL: base, Token: "t", HTTP: api.Client()}
		_, err := c.Terminal(t.Context(), "sbx_x", TerminalRequest{Command: "sh", Env: map[string]string{"SECRET": "s"}})
		if err == nil {
			t.Errorf("%s was opened", at)
		} else if strings.Contains(err.Error(), "terminal+token") || strings.Contains(err.Error(), "terminal%2Btoken") {
			t.Errorf("the token is in the error: %v", err)
		}
		return err
	}
	for _, at := range []string{
		"ws://192.0.2.1/", "http://" + host, "https://" + host, "ws://user@" + host, "ws://" + host + "/?x", "ws://" + host + "/#x", "", "ws:///x", "//" + host, "ws://localhost.example/",
	} {
		if err := open(api.URL, at); err != nil && !strings.Contains(err.Error(), "names no place") {
			t.Errorf("%q: %v", at, err)
		}
	}
	open(api.URL, "ws"+strings.TrimPrefix(api.URL, "http")) // redirects
	if visits.Load() != 0 {
		t.Error("another host was asked")
	}
	// A service that is elsewhere has no terminals on this machine.
	c := &Client{BaseURL: "https://vercel.example/api", Token: "t"}
	if err := c.init(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.terminalURL("ws://127.0.0.1:80/"); err == nil {
		t.Error("a terminal in the clear for a service elsewhere")
	}
	if _, err := c.terminalURL("wss://sb-x.vercel.run/interactive"); err != nil {
		t.Error(err)
	}
}
