//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Kept-alive HTTP connections, an event stream, and requests inside opened TLS
// notice nothing of reloads that do not concern them.
func TestHTTPUnderReload(t *testing.T) {
	events := make(chan string)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stream" {
			fmt.Fprint(w, "ok")
			return
		}
		for {
			select {
			case e := <-events:
				fmt.Fprintf(w, "data: %s\n", e)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer func() { plain.CloseClientConnections(); plain.Close() }()
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	tlsPort, roots := origin(t, "api.test")
	text := "hosts:\n  app.test: 127.0.0.1\n  api.test: 127.0.0.1\nallow:\n  - app.test:" + port + "\n  - GET https://api.test:" + tlsPort + "/v1/**\n"
	path, bundle := write(t, "policy.yaml", text), filepath.Join(t.TempDir(), "ca.pem")
	cmd := exec.Command("egressd", "--policy", path, "--listen", "127.0.0.1:0", "--ca-bundle", bundle)
	cmd.Env = []string{"SSL_CERT_FILE=" + roots}
	p := launch(t, cmd)
	p.wait("msg=ready")
	door := p.addr("proxy")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var failures, done atomic.Int64
	hammer := func(c *http.Client, page string) {
		for {
			select {
			case <-stop:
				return
			default:
			}
			resp, err := c.Get(page)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err != nil || resp.StatusCode != http.StatusOK {
				failures.Add(1)
				t.Logf("%s: %v %v", page, resp, err)
			}
			done.Add(1)
		}
	}
	proxied := func() *http.Client {
		return &http.Client{Timeout: patience, Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: door})}}
	}
	kept := client(t, door, bundle)
	kept.Transport.(*http.Transport).DisableKeepAlives = false
	wg.Go(func() { hammer(proxied(), "http://app.test:"+port+"/") })
	wg.Go(func() { hammer(proxied(), "http://app.test:"+port+"/") })
	wg.Go(func() { hammer(kept, "https://api.test:"+tlsPort+"/v1/x") })
	streaming := proxied()
	streaming.Timeout = 0
	go func() { events <- "first" }() // the head comes with it
	stream := must(streaming.Get("http://app.test:" + port + "/stream"))(t)
	defer stream.Body.Close()
	r := bufio.NewReader(stream.Body)
	must(r.ReadString('\n'))(t)
	for i := range 6 {
		ways["rename"](t, path, fmt.Sprintf("%s  - round%d.test\n", text, i))
		p.wait("policy change", "added=", fmt.Sprintf("round%d.test", i))
		select {
		case events <- "again":
		case <-time.After(patience):
			t.Fatal("the stream has ended")
		}
		must(r.ReadString('\n'))(t)
	}
	close(stop)
	wg.Wait()
	if failures.Load() > 0 || done.Load() < 20 {
		t.Errorf("%d of %d requests failed", failures.Load(), done.Load())
	}
}
