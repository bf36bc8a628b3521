package guide

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInto(t *testing.T) {
	const one, two = begin + "one\n" + end, begin + "two\n" + end
	for name, tt := range map[string]struct{ old, want string }{
		"empty":         {"", two},
		"behind text":   {"# Mine\n", "# Mine\n\n" + two},
		"no line end":   {"# Mine", "# Mine\n\n" + two},
		"an older one":  {"a\n" + one + "b\n", "a\n" + two + "b\n"},
		"the same":      {two + "b\n", two + "b\n"},
		"no end":        {"a\n" + begin + "b\n", ""},
		"someone's end": {"a\n" + end, "a\n" + end + "\n" + two},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "AGENTS.md")
			if tt.old != "" {
				if err := os.WriteFile(file, []byte(tt.old), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			changed, err := Into(file, "two\n")
			got, _ := os.ReadFile(file)
			if tt.want == "" {
				if err == nil || string(got) != tt.old {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil || string(got) != tt.want || changed != (tt.old != tt.want) {
				t.Errorf("%v, %v, %q", changed, err, got)
			}
			if info, err := os.Stat(file); err != nil || tt.old != "" && info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("%d files are left", len(left))
			}
		})
	}
}

// A link stays a link, and anything else that is not a regular file is left alone.
func TestIntoElse(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "CLAUDE.md"), filepath.Join(dir, "AGENTS.md")
	if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("CLAUDE.md", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Into(link, "two\n"); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "CLAUDE.md" {
		t.Errorf("the link is gone: %q, %v", to, err)
	}
	if got, _ := os.ReadFile(file); string(got) != "x\n\n"+begin+"two\n"+end {
		t.Errorf("%q", got)
	}
	if _, err := Into(dir, "two\n"); err == nil {
		t.Error("a directory was taken")
	}
	if _, err := Into(filepath.Join(dir, "none", "x"), "two\n"); err == nil {
		t.Error("a directory was made")
	}
}
