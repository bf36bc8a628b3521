package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"egressd/dnsfilter"
	"egressd/internal/daemon/systemd"
	"egressd/policy"
	"egressd/proxy"
)

// config is a small daemon: one policy, one door, events into a file.
func config(t *testing.T) Config {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "events"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return Config{
		Policies: []Source{{Name: DefaultPolicy, Flags: new(policy.Document)}},
		Doors:    Doors{Listen: []Door{{Addr: "127.0.0.1:0"}}}, Outputs: Outputs{Stdout: f},
	}
}

// The zero Config serves nobody.
func TestZeroConfig(t *testing.T) {
	var c *ConfigError
	if err := Run(t.Context(), Config{}); !errors.As(err, &c) || !strings.Contains(err.Error(), "--policy") {
		t.Errorf("got %v", err)
	}
}

// Asked to end while it starts, a daemon ends in order: nothing failed.
func TestEndedWhileStarting(t *testing.T) {
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Run(ctx, config(t)); err != nil {
		t.Errorf("got %v", err)
	}
	if after := runtime.NumGoroutine(); after > before+1 { // the runtime's own come late
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// A door that fails for good ends the daemon with an error that names it.
func TestDoorFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	c := config(t)
	c.Sockets = []systemd.Named{{Name: "proxy", Listener: ln}}
	if err := Run(t.Context(), c); !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), "socket proxy of the service manager") {
		t.Errorf("got %v", err)
	}
}

func TestBadSockets(t *testing.T) {
	for name, want := range map[string]string{
		"web": "FileDescriptorName=", "proxy.nobody": `no policy "nobody"`, "": "FileDescriptorName=",
	} {
		c := config(t)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		c.Sockets = []systemd.Named{{Name: name, Listener: ln}}
		var config *ConfigError
		if err := Run(t.Context(), c); !errors.As(err, &config) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	c := config(t)
	c.Sockets = []systemd.Named{{Name: "proxy", Packet: pc}}
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "ListenStream=") {
		t.Errorf("a datagram socket: %v", err)
	}
}

// ready is a daemon with policies and routes, nothing served.
func ready(t *testing.T, c Config) *daemon {
	t.Helper()
	d := &daemon{c: c}
	if err := d.defaults(); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.record, err = openRecord(&d.c, d.metrics); err != nil {
		t.Fatal(err)
	}
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	d.routes.sort()
	return d
}

func TestSources(t *testing.T) {
	c := config(t)
	for _, s := range []string{"10.0.0.0/8=a", "10.1.0.0/16=b", "10.1.2.3/32=a", "2001:db8::/32=b", "0.0.0.0/0=c"} {
		cidr, name, _ := strings.Cut(s, "=")
		c.Sources = append(c.Sources, SourceRule{netip.MustParsePrefix(cidr), name})
	}
	for _, name := range []string{"a", "b", "c"} {
		c.Policies = append(c.Policies, Source{Name: name})
	}
	d := ready(t, c)
	own := d.find(DefaultPolicy)
	route := d.routes.behind(own)
	for addr, want := range map[string]string{
		"10.9.9.9": "a", "10.1.9.9": "b", "10.1.2.3": "a", "::ffff:10.1.9.9": "b", "2001:db8::1": "b", "192.0.2.1": "c",
		"2001:db9::1": DefaultPolicy, "fe80::1%eth0": DefaultPolicy,
	} {
		got := route(proxy.Client{Addr: netip.AddrPortFrom(netip.MustParseAddr(addr), 1)})
		if got != d.find(want).gate {
			t.Errorf("%s is not judged by %s", addr, want)
		}
	}
	if route(proxy.Client{}) != own.gate {
		t.Error("a client without an address is not the listener's")
	}
	if route(proxy.Client{Token: "x", HasToken: true}) != nil || route(proxy.Client{HasToken: true}) != nil {
		t.Error("an unknown token, or an empty one, falls back to something")
	}
	if d.routes.behind(nil)(proxy.Client{Addr: netip.MustParseAddrPort("[2001:db9::1]:1")}) != nil {
		t.Error("a door of nobody's has a policy")
	}
}

// Without tokens and sources nobody is routed, and credentials mean nothing.
func TestNoRoute(t *testing.T) {
	d := ready(t, config(t))
	if d.routes.behind(d.find(DefaultPolicy)) != nil || d.routes.behind(nil) == nil {
		t.Error("one policy needs no route, and a door of nobody's needs one")
	}
}

func TestCheckLoop(t *testing.T) {
	for _, tt := range []struct {
		upstream, own string
		loop          bool
	}{
		{"127.0.0.1:3130", "127.0.0.1:3130", true},
		{"tcp://127.0.0.1:3130", "127.0.0.1:3130", true},
		{"tls://dns.example@[::1]:853", "[::1]:853", true},
		{"127.0.0.1", "0.0.0.0:53", true},
		{"[::1]:53", "[::]:53", true},
		{"127.0.0.2:3130", "127.0.0.1:3130", false},
		{"192.0.2.1", "0.0.0.0:53", false},
		{"127.0.0.1:53", "127.0.0.1:3130", false},
	} {
		u, err := dnsfilter.ParseUpstream(tt.upstream)
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{sockets: sockets{ownDNS: []netip.AddrPort{netip.MustParseAddrPort(tt.own)}}}
		if err := d.checkLoop([]dnsfilter.Upstream{u}); (err != nil) != tt.loop {
			t.Errorf("%s at a daemon on %s: %v", tt.upstream, tt.own, err)
		}
	}
}

func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	for _, text := range []string{"one", "two"} {
		if err := replaceFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	// Over a directory it cannot be renamed; nothing is left behind.
	dir := filepath.Join(filepath.Dir(path), "dir")
	if err := os.MkdirAll(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(dir, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRejections(t *testing.T) {
	var r rejections
	r.set("policy b", errors.New("line 1\nline 2"))
	r.set("policy a", errors.New("x"))
	r.set("policy c", nil)
	if got := r.lines(); r.count() != 2 || len(got) != 2 || !strings.HasPrefix(got[0], "policy a ") || !strings.Contains(got[1], "line 1; line 2") {
		t.Errorf("got %q", got)
	}
	r.set("policy b", nil)
	if r.count() != 1 {
		t.Error("what was loaded since is still rejected")
	}
}

func TestFirst(t *testing.T) {
	if got := first(slices.Repeat([]string{"x"}, maxLogged), 0); len(got) != maxLogged {
		t.Errorf("%d lines", len(got))
	}
	if got := first(slices.Repeat([]string{"x"}, maxLogged+1), 2); len(got) != maxLogged+1 || got[maxLogged] != "and 3 more" {
		t.Errorf("%d lines, then %q", len(got), got[len(got)-1])
	}
}

// The gate of a token that nobody uses any more goes, and comes again.
func TestTokenGatesAreCollected(t *testing.T) {
	c := config(t)
	c.Tokens = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(c.Tokens, []byte("default aaaaaaaaaaaaaaaaaaaaaaaa\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := ready(t, c)
	set, err := d.readTokens()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	d.tasks.Group, d.tasks.ctx = errgroup.WithContext(ctx)
	defer func() { stop(); _ = d.tasks.Wait() }()
	d.routes.set(set)
	first := d.routes.byToken("aaaaaaaaaaaaaaaaaaaaaaaa")
	if first == nil || d.routes.byToken("aaaaaaaaaaaaaaaaaaaaaaaa") != first || d.routes.byToken("bbbbbbbbbbbbbbbbbbbbbbbb") != nil {
		t.Fatal("a token has one gate, and an unknown one none")
	}
	d.routes.collect(time.Now().Add(tokenIdle - time.Minute))
	if d.routes.byToken("aaaaaaaaaaaaaaaaaaaaaaaa") != first {
		t.Error("a gate in use was ended")
	}
	d.routes.collect(time.Now().Add(tokenIdle + time.Minute))
	if again := d.routes.byToken("aaaaaaaaaaaaaaaaaaaaaaaa"); again == nil || again == first {
		t.Error("an idle gate stays, or does not come again")
	}
}
