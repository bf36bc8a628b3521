package bounds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes directories with the files of control groups.
func tree(t *testing.T, groups map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for dir, controllers := range groups {
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		available, enabled, _ := strings.Cut(controllers, "/")
		for name, text := range map[string]string{"cgroup.procs": "", "cgroup.controllers": available, "cgroup.subtree_control": enabled} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// A group is made only where its limits hold, and the reason is told where there is
// no such place.
func TestWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		groups map[string]string // directory: available/enabled
		l      Limits
		want   string
	}{
		{"nothing available", map[string]string{".": "hugetlb/hugetlb", "a": "/"}, Limits{Pids: 9}, "the controller pids is not there (it has: hugetlb)"},
		{"one of two", map[string]string{".": "pids memory/pids memory", "a": "pids memory/"}, Limits{Pids: 9, CPU: 500}, "the controller cpu is not there (it has: pids memory)"},
		{"no settings where they should be", map[string]string{".": "pids/pids", "a": "pids/pids"}, Limits{Pids: 9}, "pids.max"},
	} {
		root := tree(t, tt.groups)
		g, err := newBelow(root, filepath.Join(root, "a"), tt.l)
		if g != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if left, _ := filepath.Glob(root + "/" + prefix + "*"); len(left) > 0 {
			t.Errorf("%s: left behind: %v", tt.name, left)
		}
	}
}

// A group with processes of its own is passed over, whatever it seems to allow.
func TestBusy(t *testing.T) {
	root := tree(t, map[string]string{".": "pids/pids", "a": "pids/pids"})
	for name, text := range map[string]string{"cgroup.type": "domain\n", "cgroup.procs": "1\n"} {
		if err := os.WriteFile(filepath.Join(root, "a", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := prepare(filepath.Join(root, "a"), []string{"pids"}); err == nil || !strings.Contains(err.Error(), "processes in it") {
		t.Errorf("got %v", err)
	}
	if err := prepare(root, []string{"pids"}); err != nil {
		t.Errorf("the root: %v", err)
	}
}

// Where the kernel's files cannot be written, nothing is bounded.
func TestNotDelegated(t *testing.T) {
	root := tree(t, map[string]string{".": "pids/pids", "a": "pids/"})
	if err := os.Remove(filepath.Join(root, "a", "cgroup.procs")); err != nil {
		t.Fatal(err)
	}
	if err := prepare(filepath.Join(root, "a"), []string{"pids"}); err == nil || !strings.Contains(err.Error(), "cgroup.procs") {
		t.Errorf("got %v", err)
	}
}

// The group of a launcher that is gone is removed, that of one that lives is not.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	const gone = "launch-4194304.XXXXXXXX" // above every process number
	for _, name := range []string{gone, "launch-1.XXXXXXXX", "launch-x", "other"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(root)
	left, err := os.ReadDir(root)
	if err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(root, gone)); err == nil {
		t.Error("the group of a launcher that is gone is still there")
	}
}

// Here or not: what New reports is true.
func TestHere(t *testing.T) {
	g, err := New(Limits{Pids: 50, Memory: 64 << 20, CPU: 500})
	if err != nil {
		if err.Error() == "" {
			t.Error("no reason")
		}
		t.Skipf("no control group can be made here: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(g.Dir(), "pids.max"))
	if err != nil || string(text) != "50\n" {
		t.Errorf("pids.max is %q, %v", text, err)
	}
	if met, err := g.Close(); err != nil || len(met) > 0 {
		t.Errorf("%v, %v", met, err)
	}
	if _, err := os.Stat(g.Dir()); err == nil {
		t.Error("the group is still there")
	}
}
