//go:build system

package docs

import (
	"os"
	"path/filepath"
	"testing"
)

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

// worlds say what a page needs beyond a shell, a network and our programs.
var worlds = map[string]struct {
	first  string // the world's first process; "": a shell
	engine bool   // a container engine
	root   bool
	why    string // root
}{
	"README.md":          {engine: true},
	"docs/systemd.md":    {first: systemdWorld, root: true, why: "a system manager of its own"},
	"docs/docker.md":     {engine: true, root: true, why: "a container engine of its own"},
	"docs/compose.md":    {engine: true, root: true, why: "a container engine of its own"},
	"docs/kubernetes.md": {engine: true, root: true, why: "a container engine of its own"},
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
			w := worlds[p.name]
			if w.root && os.Geteuid() != 0 {
				t.Skipf("as root only: %s", w.why)
			}
			s := openShell(t, checkout, w.first)
			if w.engine && os.Geteuid() == 0 {
				startEngine(t, s)
			}
			r := runPage(p, s)
			for _, f := range r.findings {
				t.Errorf("%s:%d: %s", p.name, f.line, f.text)
			}
			for _, f := range r.forRoot {
				t.Logf("%s:%d: only as root: %s", p.name, f.line, f.text)
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
