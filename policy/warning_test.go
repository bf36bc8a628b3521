package policy

import "testing"

func TestWarnings(t *testing.T) {
	for rule, want := range map[string]bool{
		"*.github.io":             true,
		".github.io":              true,
		"*.github.io:443":         true,
		"*.s3.amazonaws.com":      true,
		"*.vercel.app":            true,
		"*.cloudfront.net":        true,
		"*.compute.amazonaws.com": true,
		"*.me.github.io":          false,
		"me.github.io":            false,
		"*.example.com":           false,
		"*.amazonaws.com":         false, // owned by one; its shared parts are below
		"*.internal":              false,
		"*.corp.internal":         false,
		"203.0.113.0/24":          false,
	} {
		p, err := Compile(&Document{Allow: []Entry{{Text: rule, Pos: Pos{File: "p.yaml", Line: 3, Column: 5}}}})
		if err != nil {
			t.Fatal(rule, err)
		}
		got := p.Warnings()
		if len(got) == 1 != want || len(got) > 1 {
			t.Errorf("%s: %v", rule, got)
		}
		if len(got) == 1 && got[0].Pos.Line != 3 {
			t.Errorf("%s: the warning is at %s", rule, got[0].Pos)
		}
	}
	if (*Policy)(nil).Warnings() != nil {
		t.Error("a nil policy has warnings")
	}
}

// A list entry with a wildcard makes every name below its base a suffix.
func TestWildcardSuffixesAreRefused(t *testing.T) {
	for _, rule := range []string{"*.ck", "*.mm", "*.np", "*.fk", "*.kawasaki.jp", ".kawasaki.jp", "*.nom.br", "*.com", "*.co.uk"} {
		if _, err := Compile(&Document{Allow: []Entry{{Text: rule}}}); err == nil {
			t.Errorf("%s is accepted", rule)
		}
	}
	for _, rule := range []string{"*.city.kawasaki.jp", "*.www.ck", "*.example.co.ck"} {
		if _, err := Compile(&Document{Allow: []Entry{{Text: rule}}}); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
