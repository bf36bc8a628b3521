package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// longList is a policy file of n exact hosts and a handful of other rules.
func longList(n int) []byte {
	var b strings.Builder
	b.WriteString("allow:\n  - .suffix.test\n  - 10.0.0.0/8:5432\n  - GET https://path.test/v1/**\ndeny:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - host-%d.list.test\n", i)
	}
	return []byte(b.String())
}

func hotRequests(t testing.TB) map[string]Request {
	return map[string]Request{
		"exact":   {Host: host(t, "api.example.com"), Port: 443},
		"deep":    {Host: host(t, "a.b.c.d.e.suffix.test"), Port: 443},
		"missing": {Host: host(t, "a.b.c.d.missing.test"), Port: 443},
		"dns":     {Host: host(t, "api.example.com")},
		"wire":    {Host: host(t, "api.example.com"), Port: 443, Wire: WireTLS, SNI: host(t, "api.example.com")},
		"address": {Host: host(t, "api.example.com"), Port: 443, Addr: netip.MustParseAddr("8.8.8.8")},
		"special": {Host: host(t, "api.example.com"), Port: 443, Addr: netip.MustParseAddr("64:ff9b::a00:1")},
		"literal": {Host: host(t, "10.1.2.3"), Port: 5432},
		"request": {
			Host: host(t, "path.test"), Port: 443, Wire: WireTLS, SNI: host(t, "path.test"), HTTPHost: host(t, "path.test"),
			Method: "GET", Path: "/v1/a%2Fb//c;d/%65/",
		},
		"refused": {Host: host(t, "path.test"), Port: 443, Method: "GET", Path: "/v1/%252e%252e/x"},
	}
}

func hotPolicy(t testing.TB) *Policy {
	return compileRules(t, "api.example.com", ".suffix.test", "10.0.0.0/8:5432", "8.0.0.0/8:1", "fd00::/8",
		"GET https://path.test/v1/**", "!bad.suffix.test", "!* https://path.test/**/admin/**", "!192.168.0.0/16")
}

// TestDecideAllocatesNothing is the budget: 0 allocations, whatever is asked.
func TestDecideAllocatesNothing(t *testing.T) {
	p := hotPolicy(t)
	for name, r := range hotRequests(t) {
		if n := testing.AllocsPerRun(100, func() { p.Decide(r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	r, addrs := hotRequests(t)["exact"], []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("2606:4700::1")}
	if n := testing.AllocsPerRun(100, func() { p.DecideAddrs(r, addrs) }); n != 0 {
		t.Errorf("DecideAddrs: %v allocations", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	p := hotPolicy(b)
	for name, r := range hotRequests(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Decide(r)
			}
		})
	}
}

// BenchmarkDecideMillion shows that a look-up does not grow with the list.
func BenchmarkDecideMillion(b *testing.B) {
	d, err := ParseFile("million", longList(1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	p, err := Compile(d)
	if err != nil {
		b.Fatal(err)
	}
	r := Request{Host: host(b, "host-777777.list.test"), Port: 443}
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(r)
	}
}

// BenchmarkLoadMillion is the budget "a million-domain list loads in about a
// second", from bytes to a policy that answers.
func BenchmarkLoadMillion(b *testing.B) {
	data := longList(1_000_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		d, err := ParseFile("million", data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Compile(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseHost(b *testing.B) {
	for _, s := range []string{"api.example.com", "API.Example.com.", "bücher.example", "192.0.2.1", "2001:db8::1"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseHost(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecideList asks a list file for names in it: one that is asked again,
// and others each time, whose rules are read from the list's text.
func BenchmarkDecideList(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "host-%d.list.test\n", i)
		}
		p := mustFiles(b, nil, "allow_file: l\n", map[string]string{"dir/l": text.String()})
		hosts := make([]Host, 1<<16)
		for i := range hosts {
			hosts[i] = host(b, fmt.Sprintf("host-%d.list.test", i*7919%n))
		}
		for name, mask := range map[string]int{"again": 0, "others": len(hosts) - 1} {
			b.Run(fmt.Sprint(n, "/", name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					p.Decide(Request{Host: hosts[i&mask], Port: 443})
				}
			})
		}
	}
}
