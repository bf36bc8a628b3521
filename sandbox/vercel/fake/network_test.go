package fake

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
)

// origin is a server on this machine that sandboxes may reach by names.
type origin struct {
	*httptest.Server
	port string
	mu   sync.Mutex
	seen []http.Header
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{}
	o.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.seen = append(o.seen, r.Header.Clone())
		o.mu.Unlock()
		if r.URL.Path == "/hold" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "key=%s host=%s", r.Header.Get("X-Key"), r.Host)
	}))
	t.Cleanup(o.Close)
	o.port = o.Listener.Addr().String()[strings.LastIndexByte(o.Listener.Addr().String(), ':')+1:]
	return o
}

// config leads names to o.
func (o *origin) config(names ...string) Config {
	c := Config{Hosts: map[string][]netip.Addr{}, RootCAs: o.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	for _, n := range names {
		c.Hosts[n] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	var port uint16
	fmt.Sscan(o.port, &port)
	c.TLSPorts = []uint16{port}
	return c
}

// curl reports whether a request from inside reached the origin, and its answer.
func (d *double) curl(sid, flags, url string) (string, bool) {
	d.t.Helper()
	out, code := d.run(sid, "curl -s --max-time 10 "+flags+" "+url+" 2>&1")
	return out, code == 0
}

// A policy holds from the first command on, and a new one at once.
func TestNetworkPolicy(t *testing.T) {
	o := newOrigin(t)
	d := newDouble(t, o.config("a.test", "b.test", "www.x.test"))
	sid := d.create(`{"projectId":"p","persistent":false,"networkPolicy":{"mode":"deny-all"}}`)
	url := func(host string) string { return "https://" + host + ":" + o.port + "/" }
	for _, step := range []struct {
		policy string
		reach  []string
		not    []string
	}{
		{"", nil, []string{"a.test"}},
		{`{"allow":["a.test"]}`, []string{"a.test"}, []string{"b.test"}},
		{`{"allow":["www.*.test"]}`, []string{"www.x.test"}, []string{"a.test"}},
		{`{"mode":"deny-all"}`, nil, []string{"a.test", "www.x.test"}},
		{`{"subnets":{"allow":["127.0.0.0/8"]}}`, []string{"a.test", "b.test"}, nil},
		{`{"allow":["a.test"],"subnets":{"deny":["127.0.0.0/8"]}}`, nil, []string{"a.test", "b.test"}},
		{`{"mode":"allow-all"}`, []string{"a.test", "b.test"}, nil},
		{`{"allow":["*"]}`, []string{"a.test", "b.test"}, nil},
	} {
		if step.policy != "" {
			g := d.send("POST", sessions+sid+"/network-policy", step.policy).want(200)
			if g.at("session", "networkPolicy", "mode") == nil {
				t.Errorf("%s: got %s", step.policy, g.body)
			}
		}
		for _, h := range step.reach {
			if out, ok := d.curl(sid, "-k", url(h)); !ok || !strings.HasPrefix(out, "key=") {
				t.Errorf("%s: %s was not reached: %s", step.policy, h, out)
			}
		}
		for _, h := range step.not {
			if out, ok := d.curl(sid, "-k", url(h)); ok {
				t.Errorf("%s: %s was reached: %s", step.policy, h, out)
			}
		}
	}
	d.send("POST", sessions+sid+"/network-policy", `{"mode":"x"}`).want(400, "bad_request")
	g := d.send("POST", sessions+sid+"/stop", nil).want(200)
	if in, _ := g.at("session", "networkTransfer", "ingress").(float64); in == 0 {
		t.Errorf("nothing was counted: %s", g.body)
	}
}

// A new policy ends the connections that the old one let through.
func TestNetworkPolicyEndsConnections(t *testing.T) {
	o := newOrigin(t)
	d := newDouble(t, o.config("a.test"))
	sid := d.create(`{"projectId":"p","persistent":false,"networkPolicy":{"allow":["a.test"]}}`)
	cid := d.send("POST", sessions+sid+"/cmd", `{"command":"curl","args":["-sk","--max-time","20","https://a.test:`+o.port+`/hold"]}`).want(200).text("command", "id")
	for n := 0; n == 0; {
		o.mu.Lock()
		n = len(o.seen)
		o.mu.Unlock()
	}
	begun := time.Now()
	d.send("POST", sessions+sid+"/network-policy", `{"mode":"deny-all"}`).want(200)
	g := d.send("GET", sessions+sid+"/cmd/"+cid+"?wait=true", nil).want(200)
	if code := g.at("command", "exitCode"); code == 0.0 || code == 28.0 || time.Since(begun) > 10*time.Second {
		t.Errorf("the connection ended with %v after %v", code, time.Since(begun))
	}
}

// reasons keeps why flows were denied.
type reasons struct {
	mu  sync.Mutex
	why map[string]string
}

func (r *reasons) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := eventtest.Of(e); l.Decision == "blocked" {
		r.why[l.Host] = l.Reason
	}
	return nil
}

// All is allowed of what is on the Internet: not this machine, nor its networks.
func TestAllowAllIsNotPrivate(t *testing.T) {
	seen := &reasons{why: map[string]string{}}
	d := newDouble(t, Config{Events: seen})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	for _, addr := range []string{"10.1.2.3", "169.254.169.254", "192.168.0.1"} {
		if out, ok := d.curl(sid, "-k", "https://"+addr+"/"); ok {
			t.Errorf("%s was reached: %s", addr, out)
		}
		seen.mu.Lock()
		if got := seen.why[addr]; got != "destination_ip_prohibited" {
			t.Errorf("%s: denied for %q", addr, got)
		}
		seen.mu.Unlock()
	}
}

// A header of a rule is put in outside: nothing inside has its value, and it
// goes to no other host.
func TestTransform(t *testing.T) {
	o := newOrigin(t)
	// The origin's certificate is for example.com.
	d := newDouble(t, o.config("example.com", "b.test"))
	const secret = "s3cret-value"
	sid := d.create(`{"projectId":"p","persistent":false,"networkPolicy":{"allow":{"example.com":[{"match":{"path":{"startsWith":"/v1/"}},"transform":[{"headers":{"x-key":"` + secret + `"}}]},{"transform":[{"headers":{"x-key":"other"}}]}],"b.test":[]}}}`)
	base := "https://example.com:" + o.port
	for _, tt := range []struct{ flags, url, want string }{
		{"", base + "/v1/x", "key=" + secret},
		{"-H 'X-Key: mine'", base + "/v1/x", "key=" + secret},
		{"", base + "/v2/x", "key=other"},
		{"-k", "https://b.test:" + o.port + "/v1/x", "key= "},
	} {
		if out, ok := d.curl(sid, tt.flags, tt.url); !ok || !strings.HasPrefix(out, tt.want) {
			t.Errorf("%s %s: got %q, want %q", tt.flags, tt.url, out, tt.want)
		}
	}
	if out, _ := d.run(sid, "env; cat /.vercel/* /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"); strings.Contains(out, secret) {
		t.Error("the secret is inside")
	}
	for _, path := range []string{sessions + sid, "/v2/sandboxes?project=p"} {
		if g := d.send("GET", path, nil).want(200); strings.Contains(string(g.body), secret) {
			t.Errorf("%s tells the secret: %s", path, g.body)
		}
	}
	// Another host whose requests are changed, while it runs.
	d.send("POST", sessions+sid+"/network-policy", `{"allow":{"b.test":[],"example.com":[{"transform":[{"headers":{"x-key":"new"}}]}]}}`).want(200)
	if out, ok := d.curl(sid, "", base+"/"); !ok || !strings.HasPrefix(out, "key=new") {
		t.Errorf("after the change: %q", out)
	}
}

// Hosts that a later policy changes requests to are trusted, too.
func TestTransformLater(t *testing.T) {
	o := newOrigin(t)
	d := newDouble(t, o.config("example.com"))
	sid := d.create(`{"projectId":"p","persistent":false}`)
	d.send("POST", sessions+sid+"/network-policy", `{"allow":{"example.com":[{"transform":[{"headers":{"x-key":"new"}}]}]}}`).want(200)
	if out, ok := d.curl(sid, "", "https://example.com:"+o.port+"/"); !ok || !strings.HasPrefix(out, "key=new") {
		t.Errorf("got %q", out)
	}
}
