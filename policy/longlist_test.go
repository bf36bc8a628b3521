package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestLongLists reads files both ways and wants one document, to the column.
func TestLongLists(t *testing.T) {
	run := "  - a.example.com\n  - b-c.example.com\n"
	for name, tt := range map[string]struct {
		text   string
		lifted bool
	}{
		"plain":             {"allow:\n" + run, true},
		"no indentation":    {"allow:\n- a.example.com\n- b.example.com\ndeny:\n- c.example.com\n", true},
		"mixed":             {"allow:\n" + run + "  - \"*.example.org\"\n  - x.test:22\n" + run + "deny: [y.test]\n", true},
		"other first":       {"allow:\n  - x.test:22\n" + run, true},
		"comments between":  {"allow:\n  # one\n  - a.example.com\n\n  - b.example.com # two\n  - c.example.com\n", true},
		"CRLF":              {"allow:\r\n  - a.example.com\r\n  - b.example.com\r\n", true},
		"both sections":     {"deny:\n" + run + "audit: false\nallow:\n  - z.example.com\n", true},
		"no final newline":  {"allow:\n  - a.example.com", true},
		"other keys":        {"allow:\n" + run + "hosts:\n  a.example.com: 10.0.0.1\npresets:\n  - npm\n", true},
		"numbers":           {"allow:\n" + run + "  - 1.5.test\n", true},
		"block scalar":      {"presets: |\n  allow:\n  - a.example.com\nallow:\n" + run, false},
		"quoted over lines": {"presets: [\"\nallow:\n  - a.example.com\n\"]\n", false},
		"flow":              {"{allow: [a.example.com]}\n", false},
		"twice":             {"allow:\n" + run + "allow:\n" + run, false},
		"deeper":            {"allow:\n" + run + "    - c.example.com\n", false},
		"folded item":       {"allow:\n" + run + "    more\n", false},
		"mapping":           {"allow:\n" + run + "  key: value\n", false},
		"two documents":     {"allow:\n" + run + "---\nallow:\n" + run, false},
		"tab":               {"allow:\n\t- a.example.com\n" + run, false},
		"bad rule":          {"allow:\n" + run + "  - a..b\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			long := &fileParser{name: "f", doc: &Document{}}
			if _, ok := long.loadLong([]byte(tt.text)); ok != tt.lifted {
				t.Errorf("read the short way: %t, want %t", ok, tt.lifted)
			}
			short, shortErr := parseFile("f", []byte(tt.text), false)
			got, err := parseFile("f", []byte(tt.text), true)
			if diff := cmp.Diff(short, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b Host) bool { return a == b })); diff != "" {
				t.Errorf("the two ways differ:\n%s", diff)
			}
			if (err == nil) != (shortErr == nil) || err != nil && err.Error() != shortErr.Error() {
				t.Errorf("errors differ:\n%v\n%v", shortErr, err)
			}
		})
	}
}

// FuzzLongLists holds that what the short way accepts, YAML reads alike.
func FuzzLongLists(f *testing.F) {
	f.Add("allow:\n  - a.example.com\n  - b.example.com\ndeny:\n- c.test\n")
	f.Add("allow:\n  - a.example.com\n    x\npresets: >\n  allow:\n  - a.b\n")
	f.Add("allow:\n  - a.example.com\n- c") // found by this test
	f.Add("presets: [\"\nallow:\n- a.b\n\"]")
	f.Fuzz(func(t *testing.T, text string) {
		short, shortErr := parseFile("f", []byte(text), false)
		got, err := parseFile("f", []byte(text), true)
		if (err == nil) != (shortErr == nil) {
			t.Fatalf("%q: %v, and read the short way: %v", text, shortErr, err)
		}
		if diff := cmp.Diff(short, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b Host) bool { return a == b })); diff != "" {
			t.Fatalf("%q:\n%s", text, diff)
		}
	})
}
