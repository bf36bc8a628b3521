package policy

import (
	"slices"
	"testing"
)

func TestDiff(t *testing.T) {
	with := func(d *Document, f func(*Document)) *Document { f(d); return d }
	npm := func(d *Document) { d.Presets = []Entry{{Text: "npm"}} }
	for _, tt := range []struct {
		name           string
		old, next      *Document
		added, removed []string
	}{
		{"nothing", doc("a.test", "!b.test"), doc("A.test:443,80", "a.test", "!b.test:*"), nil, nil},
		{"order", doc("a.test", "b.test"), doc("b.test", "a.test"), nil, nil},
		{"a rule", doc("a.test"), doc("a.test", "b.test:22", "b.test:22"), []string{"allow: b.test:22"}, nil},
		{"a deny rule", doc("a.test", "!b.test"), doc("a.test"), nil, []string{"deny: b.test"}},
		{"a port", doc("a.test:22"), doc("a.test:23"), []string{"allow: a.test:23"}, []string{"allow: a.test:22"}},
		{"raw", doc("a.test:443"), doc("raw:a.test:443"), []string{"allow: raw:a.test:443"}, []string{"allow: a.test:443"}},
		{"a tree", doc("a.test", "*.a.test"), doc(".a.test"), []string{"allow: .a.test"}, []string{"allow: a.test", "allow: *.a.test"}},
		{"a method", doc("GET https://a.test/x"), doc("POST https://a.test/x"), []string{"allow: POST https://a.test/x"}, []string{"allow: GET https://a.test/x"}},
		{"an address", doc("10.0.0.0/8"), doc("10.0.0.0/9"), []string{"allow: 10.0.0.0/9"}, []string{"allow: 10.0.0.0/8"}},
		{"a hosts entry", doc("=h.test=10.0.0.1"), doc("=h.test=10.0.0.2", "=h.test=10.0.0.1"), []string{"hosts: h.test=10.0.0.1,10.0.0.2"}, []string{"hosts: h.test=10.0.0.1"}},
		{"a preset", doc("a.test"), with(doc("a.test"), npm), []string{"presets: npm"}, nil},
		{"a preset spelt out", with(doc(), npm), doc("registry.npmjs.org"), []string{"allow: registry.npmjs.org"}, []string{"presets: npm"}},
		{
			"settings", with(doc("s.test"), func(d *Document) { d.Limits.Connections = 5 }),
			with(doc("s.test"), func(d *Document) {
				d.Limits = Limits{Connections: 6, RatePerClient: 0.5}
				d.Audit = true
				d.DNS = DNS{Mode: DNSForward, Upstreams: []Entry{{Text: "192.0.2.1"}, {Text: "192.0.2.2"}}}
				d.Secrets = []Secret{{Env: "A", Header: "X", Hosts: []Host{host(t, "s.test")}}}
			}),
			[]string{"secrets: A in X towards s.test", "limits.connections: 6", "limits.rate_per_client: 0.5", "dns.mode: forward", "dns.upstreams: 192.0.2.1, 192.0.2.2", "audit: true"},
			[]string{"limits.connections: 5"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			compile := func(d *Document) *Policy {
				p, err := Compile(d)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			old, next := compile(tt.old), compile(tt.next)
			if got := next.Diff(old); !slices.Equal(got.Added, tt.added) || !slices.Equal(got.Removed, tt.removed) {
				t.Errorf("added %q removed %q", got.Added, got.Removed)
			}
			if same := old.Digest() == next.Digest(); tt.name != "a preset spelt out" && same != (len(tt.added)+len(tt.removed) == 0) {
				t.Errorf("digests are equal: %t", same)
			}
			if got := next.Diff(nil); len(got.Removed) > 0 || len(got.Added) == 0 {
				t.Errorf("from nothing: %+v", got)
			}
			if got := (*Policy)(nil).Diff(next); len(got.Added) > 0 || len(got.Removed) == 0 {
				t.Errorf("to nothing: %+v", got)
			}
		})
	}
	if got := new(Policy).Diff(nil); len(got.Added)+len(got.Removed) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}
