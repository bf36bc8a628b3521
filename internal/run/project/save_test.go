package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAllow(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"none":     {"", "allow:\n  - \"a.test:22\"\n"},
		"other":    {"deny: [x.test]", "deny: [x.test]\nallow:\n  - \"a.test:22\"\n"},
		"block":    {"allow: # these\n    # first\n    - b.test # mine\ndeny:\n  - x.test\n", "allow: # these\n    - \"a.test:22\"\n    # first\n    - b.test # mine\ndeny:\n  - x.test\n"},
		"flush":    {"allow:\n- b.test\n", "allow:\n- \"a.test:22\"\n- b.test\n"},
		"inline":   {"allow: [b.test] # mine\n", "allow: [b.test, \"a.test:22\"] # mine\n"},
		"empty":    {"allow: []\n", "allow: [\"a.test:22\"]\n"},
		"too hard": {"allow: [b.test,\n  c.test]\n", ""},
		"quoted":   {"\"allow\": [b.test]\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, s := filepath.Join(dir, "new", Name), Store{Dir: filepath.Join(dir, "trust")}
			if tt.before != "" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
					t.Fatal(err)
				}
				f, err := Read(path)
				if err == nil {
					err = s.Add(f)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			err := s.Allow(path, "a.test:22")
			got, _ := os.ReadFile(path)
			if tt.after == "" {
				if err == nil || !strings.Contains(err.Error(), "add") || string(got) != tt.before {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil || string(got) != tt.after {
				t.Fatalf("%v, %q", err, got)
			}
			f, err := Read(path)
			if err == nil {
				err = s.judge(f)
			}
			if err != nil || f.State != Trusted {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
}

// Threat: a repository's rules, which nobody has looked at, become trusted with the one
// that the person wants.
func TestAllowTrustsNothingElse(t *testing.T) {
	dir := t.TempDir()
	path, s := filepath.Join(dir, Name), Store{Dir: filepath.Join(dir, "trust")}
	const hostile = "allow: [evil.test]\n"
	if err := os.WriteFile(path, []byte(hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Allow(path, "a.test"); err == nil || !strings.Contains(err.Error(), "is not trusted") {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != hostile {
		t.Errorf("%q", got)
	}
	if f, err := Read(path); err != nil || s.judge(f) != nil || f.State == Trusted {
		t.Errorf("%+v, %v", f, err)
	}
	// A rule cannot carry more than itself into the file.
	own := filepath.Join(dir, "own.yaml")
	if err := s.Allow(own, "a.test\"\n  - evil.test"); err == nil {
		got, _ := os.ReadFile(own)
		t.Errorf("%q", got)
	}
	if err := s.Allow(own, "GET https://a.test/x\ny"); err == nil {
		t.Error("a rule with a line break was saved")
	}
}
