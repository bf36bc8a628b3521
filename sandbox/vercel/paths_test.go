package vercel

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"egressd/sandbox/vercel/fake"
)

// listed is every path below dir, with its mode, target or sum.
func listed(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		must(t, err)
		name, _ := filepath.Rel(dir, path)
		text := info.Mode().Type().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			must(t, err)
			text += to
		case info.Mode().IsRegular():
			must(t, os.Chmod(path, 0o600)) // to read it, whoever this is
			data, err := os.ReadFile(path)
			must(t, err)
			text = fmt.Sprintf("%v %x", info.Mode(), sha256.Sum256(data))
		}
		all[name] = text
		return nil
	}))
	return all
}

// TestEveryPath sends files of every mode and of odd names, changes them there,
// and compares what came back with what the same script makes of a copy.
func TestEveryPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	same := t.TempDir()
	odd := []string{
		"-rf", "new\nline", "\xff\xfe", "e\u0301", "\u00e9", "quo'te\"", "*", "\x01\x1b[31m", "back\\slash", " ", strings.Repeat("n", 255),
		strings.Repeat("d/", 60) + "deep", strings.Repeat(strings.Repeat("p", 99)+"/", 6) + "long",
	}
	for _, dir := range []string{w.dir, same} {
		for mode := range fs.FileMode(0o1000) {
			if os.Geteuid() != 0 && mode&0o400 == 0 {
				continue // what cannot be read is not sent
			}
			name := filepath.Join(dir, fmt.Sprintf("%03o", mode))
			must(t, os.WriteFile(name, fmt.Append(nil, mode), 0o600))
			must(t, os.Chmod(name, mode))
		}
		for _, name := range odd {
			must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, name), []byte("odd"), 0o644))
		}
		must(t, os.Truncate(filepath.Join(dir, "*"), 1<<20))
		for name, to := range map[string]string{"dangling": "nowhere", "loop": "loop", "out": "/etc/passwd", "new\nlink": "-rf"} {
			must(t, os.Symlink(to, filepath.Join(dir, name)))
		}
	}
	must(t, syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600))
	const script = `umask 022; m=0; for f in ???; do m=$((m+1)); case $((m%4)) in 0) rm -f -- "$f";; 1) mv -- "$f" "moved $f";; 2) chmod u+x -- "$f";; esac; done
		m=0; while [ $m -lt 512 ]; do n=made$(printf %03o $m); echo $m >$n; chmod $(printf %03o $m) $n; m=$((m+1)); done
		echo more >>./-rf; rm loop; ln -s loop2 loop; rm -r d; mkdir -p empty/dir; truncate -s 1M hole`
	w.ok(0, script)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = same
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	must(t, os.Remove(filepath.Join(w.dir, "fifo")))
	got, want := listed(t, w.dir), listed(t, same)
	if len(want) < 700 {
		t.Errorf("%d paths", len(want))
	}
	maps.DeleteFunc(got, func(name, text string) bool {
		ok := want[name] == text
		if ok {
			delete(want, name)
		}
		return ok
	})
	if len(got)+len(want) > 0 {
		t.Errorf("here %d: %.2000q\nwant %d: %.2000q", len(got), got, len(want), want)
	}
	w.clean()
}
