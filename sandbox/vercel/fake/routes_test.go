package fake

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A server inside is reached by the route's address, and by its name.
func TestRoutes(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false,"ports":[3000,3001],"name":"a"}`)
	g := d.send("GET", sessions+sid, nil).want(200)
	url, sub := g.text("routes", 0, "url"), g.text("routes", 0, "subdomain")
	if !strings.HasPrefix(url, "http://127.0.0.1:") || g.at("routes", 1, "port") != 3001.0 {
		t.Fatalf("routes: %s", g.body)
	}
	if _, code := d.run(sid, "command -v python3"); code != 0 {
		t.Skip("no python3 to serve with")
	}
	d.send("POST", sessions+sid+"/cmd", `{"command":"python3","args":["-m","http.server","3000"],"cwd":"/tmp"}`).want(200)
	d.run(sid, "echo hello >/tmp/hello.txt; while ! curl -s http://127.0.0.1:3000/ >/dev/null; do sleep 0.02; done")
	get := func(url, host string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/hello.txt", nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := d.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if status, got := get(url, ""); status != 200 || got != "hello\n" {
		t.Errorf("by address: %d %q", status, got)
	}
	if status, got := get(d.url, sub+".vercel.run"); status != 200 || got != "hello\n" {
		t.Errorf("by name: %d %q", status, got)
	}
	if status, _ := get(d.url, g.text("routes", 1, "subdomain")+".vercel.run"); status != 502 {
		t.Errorf("nobody listens: %d", status)
	}
	if status, _ := get(d.url, "sb-none.vercel.run"); status != 404 {
		t.Errorf("no such route: %d", status)
	}
	d.send("DELETE", "/v2/sandboxes/a?projectId=p", nil).want(200)
	if status, _ := get(d.url, sub+".vercel.run"); status != 404 {
		t.Errorf("after the end: %d", status)
	}
}
