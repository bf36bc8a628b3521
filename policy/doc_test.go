package policy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReference reads docs/policy.md: its rules must parse, its mistakes must
// not, its files must load, and its table of reasons must be the code's.
func TestReference(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	row := regexp.MustCompile("(?m)^\\| `([^`]*)` \\| (.*) \\|$")

	rules := row.FindAllStringSubmatch(section(t, text, "## Rules", "### Paths"), -1)
	if len(rules) < 15 {
		t.Fatalf("only %d rules in the table", len(rules))
	}
	for _, r := range rules {
		if _, err := Compile(doc(r[1])); err != nil {
			t.Errorf("rule %s: %v", r[1], err)
		}
	}
	wrongs := row.FindAllStringSubmatch(section(t, text, "### What is refused", "## The policy file"), -1)
	if len(wrongs) < 12 {
		t.Fatalf("only %d refused rules in the table", len(wrongs))
	}
	for _, r := range wrongs {
		if _, err := Compile(doc(r[1])); err == nil {
			t.Errorf("rule %s is said to be refused and is not", r[1])
		}
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatalf("only %d examples", len(blocks))
	}
	for _, b := range blocks {
		d, err := ParseFile("example", []byte(b[1]))
		if err != nil {
			t.Fatal(err)
		}
		err = d.ReadLists(func(name string) ([]byte, error) {
			if name == "more.txt" {
				return []byte("||ads.example.com^\n"), nil
			}
			return []byte("some.example.com\n"), nil
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := Compile(d); err != nil {
			t.Error(err)
		}
	}
	reasons := row.FindAllStringSubmatch(section(t, text, "## Reasons", "## Choices"), -1)
	if len(reasons) != len(reasonTable) {
		t.Fatalf("%d reasons in the table, %d in the code", len(reasons), len(reasonTable))
	}
	for i, r := range reasons {
		class, _, _ := strings.Cut(r[2], " ")
		if want := Reason(i); r[1] != want.String() || class != want.Class().String() {
			t.Errorf("row %d is %s, %s; the code says %s, %s", i, r[1], class, want, want.Class())
		}
	}
	for _, name := range PresetNames() {
		if !strings.Contains(section(t, text, "## Presets", "## Reasons"), "`"+name+"`") {
			t.Errorf("preset %s is not described", name)
		}
	}
}

func section(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+from)
	part, _, ok2 := strings.Cut(rest, "\n"+to)
	if !ok || !ok2 {
		t.Fatalf("no section from %q to %q", from, to)
	}
	return part
}
