package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestSavedMeanwhile saves files here while changes are applied: after the plan,
// and after the last look before the rename.
func TestSavedMeanwhile(t *testing.T) {
	inPlace := func(path string) error { return os.WriteFile(path, []byte("mine!"), 0o644) }
	renamed := func(path string) error {
		if err := os.WriteFile(path+"~", []byte("mine!"), 0o644); err != nil {
			return err
		}
		return os.Rename(path+"~", path)
	}
	for _, s := range []step{beforeCheck, beforeSwap} {
		for how, save := range map[string]func(string) error{"in place": inPlace, "renamed": renamed} {
			for _, name := range []string{"changed", "removed", "link", "new", "d/new", "mode"} {
				if name == "mode" && s == beforeSwap || name == "link" && how == "in place" {
					continue // it has no second step; it would be written through
				}
				t.Run(fmt.Sprintf("%d %s %s", s, how, name), func(t *testing.T) {
					dir := t.TempDir()
					paths{"changed": "644 start", "removed": "644 start", "link": "-> nowhere", "mode": "644 start", "other": "644 start"}.make(t, dir)
					tree, there := send(t, Config{Dir: dir})
					must(t, os.Remove(filepath.Join(there, "removed")))
					must(t, os.Remove(filepath.Join(there, "link")))
					paths{"changed": "644 their", "new": "644 their", "d/new": "644 their", "link": "-> changed", "mode": "755 start", "other": "644 their"}.make(t, there)
					tree.hook = func(at step, which string) {
						if at == s && which == name {
							must(t, save(filepath.Join(dir, name)))
						}
					}
					aside := t.TempDir()
					report, err := tree.Mirror(context.Background(), pack(t, there), aside)
					must(t, err)
					got := look(t, dir)
					if got[name] != "644 mine!" {
						t.Errorf("what was saved is lost: %q, %+v", got[name], report)
					}
					if len(report.Conflicts) != 1 || report.Conflicts[0].Path != name || got["other"] != "644 their" {
						t.Errorf("%+v", report)
					}
					if kept := look(t, aside)[name]; (name == "changed" || name == "new" || name == "d/new") && kept != "600 their" {
						t.Errorf("what came back is not put aside: %q", kept)
					}
					if stray, _ := filepath.Glob(filepath.Join(dir, ".launch-*")); len(stray) != 0 {
						t.Errorf("left: %q", stray)
					}
				})
			}
		}
	}
}
