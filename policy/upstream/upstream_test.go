package upstream

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"http://proxy.example.com:3128":  "proxy.example.com:3128 false  ",
		"HTTP://Proxy.Example.COM./":     "proxy.example.com:80 false  ",
		"https://proxy.example.com":      "proxy.example.com:443 true  ",
		"http://joe@10.0.0.1:8080":       "10.0.0.1:8080 false joe ",
		"http://joe:p%40ss@[fd00::1]:80": "[fd00::1]:80 false joe p@ss",
	} {
		a, password, err := Parse(text)
		tls := " false "
		if a.TLS {
			tls = " true "
		}
		if got := a.String() + tls + a.User + " " + password; err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", text, got, want, err)
		}
	}
	for _, text := range []string{
		"", "proxy:3128", "socks5://proxy:1080", "http://", "http://proxy:0", "http://proxy:65536", "http://proxy/path",
		"http://proxy?x", "http://proxy#x", "http://joe:hunter2%@proxy:1", "http://joe:hunter2@pro xy", "http://a..b",
	} {
		if _, _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error holds the password: %v", text, err)
		}
	}
}

func TestCompile(t *testing.T) {
	for _, s := range []Section{
		{Resolve: Local},
		{Bypass: []string{"a.example"}},
		{URL: None, Credentials: "f"},
		{URL: "http://p", Resolve: "both"},
		{URL: "http://joe:pw@p"},
		{URL: "http://p", Bypass: []string{"*"}},
		{URL: "http://p", Bypass: []string{"10.*"}},
		{URL: "http://p", Bypass: []string{""}},
		{URL: "http://p", Bypass: []string{"a.example:0"}},
		{URL: "http://p", Bypass: []string{"10.0.0.0/33"}},
		{URL: "http://p", Bypass: []string{"a..example"}},
		{URL: "http://p", Bypass: []string{"https://a.example"}},
	} {
		if p, err := s.Compile(); err == nil {
			t.Errorf("%+v is taken: %+v", s, p)
		}
	}
	p, err := Section{URL: None}.Compile()
	if err != nil || !p.None || !slices.Equal(p.Lines(), []string{"upstream_proxy: none"}) {
		t.Errorf("%+v %v", p, err)
	}
}

func TestBypass(t *testing.T) {
	p, err := Section{URL: "http://p", Bypass: []string{"one.example", "*.below.example", ".tree.example:22", "10.0.0.0/8", "[fd00::1]:443", "Corp"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{
		"one.example:443": true, "x.one.example:443": false, "xone.example:443": false,
		"below.example:443": false, "x.below.example:443": true, "x.y.below.example:443": true,
		"tree.example:22": true, "x.tree.example:22": true, "tree.example:443": false, "xtree.example:22": false,
		"10.1.2.3:5432": true, "11.1.2.3:5432": false, "::ffff:10.1.2.3:80": true,
		"fd00::1:443": true, "fd00::1:80": false, "corp:80": true, "x.corp:80": false,
	} {
		i := strings.LastIndexByte(at, ':')
		name, port := at[:i], uint16(80)
		switch at[i+1:] {
		case "443":
			port = 443
		case "22":
			port = 22
		case "5432":
			port = 5432
		}
		addr, err := netip.ParseAddr(name)
		if err == nil {
			name = ""
		}
		if got := p.Bypasses(name, addr, port); got != want {
			t.Errorf("%s bypasses: %t", at, got)
		}
	}
	if !(*Proxy)(nil).Bypasses("a.example", netip.Addr{}, 443) {
		t.Error("without a proxy there is nothing to go through")
	}
}

func TestNoProxy(t *testing.T) {
	list, all, unknown := NoProxy("localhost, .corp,*.corp.example,git.example:22 10.0.0.0/8,fd00::1,10.*,<local>")
	want := []string{".localhost", ".corp", ".corp.example", ".git.example:22", "10.0.0.0/8", "fd00::1"}
	if !slices.Equal(list, want) || all || !slices.Equal(unknown, []string{"10.*", "<local>"}) {
		t.Errorf("%q %t %q", list, all, unknown)
	}
	if _, err := ParseBypass(list); err != nil {
		t.Error(err)
	}
	if _, all, _ := NoProxy("a,*"); !all {
		t.Error("* is not all")
	}
}
