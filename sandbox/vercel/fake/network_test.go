package fake

import (
	"encoding/json"
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

func TestNetworkPolicyShapes(t *testing.T) {
	for body, want := range map[string]string{
		`{"mode":"allow-all"}`:                `{"mode":"allow-all"}`,
		`{"mode":"deny-all"}`:                 `{"mode":"deny-all"}`,
		`{}`:                                  `{"mode":"deny-all"}`,
		`{"allow":[]}`:                        `{"mode":"deny-all"}`,
		`{"subnets":{"deny":["10.0.0.0/8"]}}`: `{"mode":"custom","deniedCIDRs":["10.0.0.0/8"]}`,
		`{"allow":["a.example","*.b.example"],"subnets":{"allow":["10.0.0.0/8"],"deny":["169.254.0.0/16"]}}`:                                                    `{"mode":"custom","allowedDomains":["a.example","*.b.example"],"allowedCIDRs":["10.0.0.0/8"],"deniedCIDRs":["169.254.0.0/16"]}`,
		`{"allow":{"a.example":[{"transform":[{"headers":{"authorization":"Bearer s3cret","x-b":"s3cret"}}]}],"*":[]}}`:                                         `{"mode":"custom","allowedDomains":["*","a.example"],"injectionRules":[{"domain":"a.example","headerNames":["authorization","x-b"]}]}`,
		`{"allow":{"a.example":[{"match":{"path":{"startsWith":"/v1/"},"method":["GET"]},"transform":[{"headers":{"x-key":"s3cret"}}]}]}}`:                      `{"mode":"custom","allowedDomains":["a.example"],"injectionRules":[{"domain":"a.example","headerNames":["x-key"],"match":{"path":{"startsWith":"/v1/"},"method":["GET"]}}]}`,
		`{"mode":"custom","allowedDomains":["a.example"],"allowedCIDRs":["10.0.0.0/8"],"injectionRules":[{"domain":"b.example","headers":{"x-key":"s3cret"}}]}`: `{"mode":"custom","allowedDomains":["a.example","b.example"],"allowedCIDRs":["10.0.0.0/8"],"injectionRules":[{"domain":"b.example","headerNames":["x-key"]}]}`,
	} {
		p, err := parsePolicy(json.RawMessage(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got, _ := json.Marshal(p.json()); string(got) != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
		if _, err := new(Server).compile(p); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for body, status := range map[string]int{
		`{"mode":"some"}`: 400, `{"mode":"allow-all","allow":[]}`: 400, `{"mode":"deny-all","allowedDomains":["a"]}`: 400, `{"allowedDomains":["a"]}`: 400,
		`{"mode":"custom","allow":["a"]}`: 400, `{"allow":"a"}`: 400, `{"allow":["a b"]}`: 400, `{"allow":["a..b"]}`: 400, `{"allow":["https://a"]}`: 400,
		`{"subnets":{"allow":["10.0.0.0"]}}`: 400, `{"subnets":{"deny":["x/8"]}}`: 400, `{"allow":{"a":[{}]}}`: 400, `{"allow":{"a":{}}}`: 400,
		`{"allow":{"a":[{"transform":[],"forwardURL":"https://b"}]}}`: 400, `{"allow":{"a":[{"transform":[{"headers":{"a b":"c"}}]}]}}`: 400,
		`{"allow":{"a":[{"transform":[{"headers":{"a":"b\r\nc: d"}}]}]}}`: 400, `{"allow":{"a":[{"match":{"path":{}},"transform":[]}]}}`: 400,
		`{"allow":{"a":[{"match":{"path":{"regex":"("}},"transform":[]}]}}`: 400, `{"allow":{"a":[{"forwardURL":"https://b/?q"}]}}`: 400,
		`{"allow":{"a":[{"forwardURL":"https://b/"}]}}`: 501, `{"allow":{"a":[{"response":{"statusCode":200}}]}}`: 501, `{"unknown":1}`: 400,
		`{"allow":{"*":[{"transform":[{"headers":{"a":"b"}}]}]}}`: 501,
	} {
		_, err := parsePolicy(json.RawMessage(body))
		if err == nil || asAPIError(err).status != status {
			t.Errorf("%s: got %v, want %d", body, err, status)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		domain, name string
		want         bool
	}{
		{"a.example", "a.example", true},
		{"a.example", "A.EXAMPLE", true},
		{"a.example", "b.a.example", false},
		{"*.a.example", "b.a.example", true},
		{"*.a.example", "c.b.a.example", true},
		{"*.a.example", "a.example", false},
		{"*", "a.example", true},
		{"www.*.com", "www.a.com", true},
		{"www.*.com", "www.a.b.com", false},
		{"www.*.com", "www.com", false},
		{"*.x.*.com", "a.b.x.c.com", true},
		{"*.com", "com", false},
	} {
		if got := covers(tt.domain, tt.name); got != tt.want {
			t.Errorf("%s covers %s: %v", tt.domain, tt.name, got)
		}
	}
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

func TestMatch(t *testing.T) {
	r := httptest.NewRequest("GET", "https://a.example/v1/x?k=abc&l=1", nil)
	r.Header.Set("X-A", "1")
	for text, want := range map[string]bool{
		`{}`: true, `{"method":["POST","GET"]}`: true, `{"method":["POST"]}`: false, `{"path":{"exact":"/v1/x"}}`: true, `{"path":{"exact":"/V1/x"}}`: false,
		`{"path":{"regex":"^/v[0-9]/"}}`: true, `{"queryString":[{"key":{"exact":"k"},"value":{"regex":"^a"}}]}`: true,
		`{"queryString":[{"key":{"exact":"l"},"value":{"regex":"^a"}}]}`: false, `{"headers":[{"key":{"exact":"x-a"},"value":{"exact":"1"}}]}`: true,
		`{"headers":[{"key":{"exact":"x-b"}}]}`: false, `{"method":["GET"],"path":{"startsWith":"/v2"}}`: false,
	} {
		var m matchBody
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if got := m.matches(r); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
