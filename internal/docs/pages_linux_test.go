package docs

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../.."

// pages lists README.md and docs/*.md.
func pages(t *testing.T) []page {
	t.Helper()
	names, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var out []page
	for _, name := range append([]string{root + "/README.md"}, names...) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePage(name[len(root)+1:], string(data))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestPages(t *testing.T) {
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for _, p := range pages(t) {
		if len(p.blocks) == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			r := runPage(p, openShell(t, checkout, plainWorld))
			for _, f := range r.findings {
				t.Errorf("%s:%d: %s", p.name, f.line, f.text)
			}
			for _, f := range r.notRun {
				t.Logf("%s:%d: not run: %s", p.name, f.line, f.text)
			}
			skipped += len(r.notRun)
			t.Logf("%s: %d commands run, %d other blocks checked, %d not run", p.name, r.commands, r.checked, len(r.notRun))
		})
	}
	t.Logf("blocks that no test runs: %d", skipped)
}
