package vercel

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// inMemory is a directory for thousands of small files: in memory where there is
// such a place, as a disk that is busy takes a minute for them.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "every-path-")
	if err != nil {
		dir, err = os.MkdirTemp("", "every-path-")
	}
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o711))
	return dir
}

// TestEveryPath sends files of every mode and of odd names, changes them there,
// and compares what came back with what the same script makes of a copy.
func TestEveryPath(t *testing.T) {
	t.Parallel()
	dir := inMemory(t)
	w := newWorld(t, fake.Config{Dir: dir})
	w.dir = filepath.Join(dir, "here")
	same := filepath.Join(dir, "same")
	must(t, errors.Join(os.Mkdir(w.dir, 0o755), os.Mkdir(same, 0o755)))
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
		for i := range 4400 {
			name := filepath.Join(dir, "many", strconv.Itoa(i%16), strconv.Itoa(i))
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.WriteFile(name, []byte(strings.Repeat("content", i%4/3)), 0o644))
		}
		must(t, os.Truncate(filepath.Join(dir, "*"), 1<<20))
		for name, to := range map[string]string{"dangling": "nowhere", "loop": "loop", "out": "/etc/passwd", "new\nlink": "-rf"} {
			must(t, os.Symlink(to, filepath.Join(dir, name)))
		}
	}
	must(t, syscall.Mkfifo(filepath.Join(w.dir, "fifo"), 0o600))
	// One process for the thousands: a fork for each would take most of the time.
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("no perl here")
	}
	const script = `use strict; umask 022; my $m = 0;
		sub put { open(my $f, ">", $_[0]) or die $!; print $f $_[1]; close $f; }
		for my $f (sort(glob("??? many/*/*"))) {
			$m++;
			if ($m % 4 == 0) { unlink $f or die $!; }
			elsif ($m % 4 == 1) { rename $f, "$f moved" or die $!; }
			elsif ($m % 4 == 2) { chmod((stat $f)[2] & 0777 | 0100, $f) or die $!; }
		}
		for (0 .. 511) { my $n = sprintf "made%03o", $_; put($n, $_); chmod $_, $n or die $!; }
		for (0 .. 1799) { mkdir "new" . $_ % 9; put("new" . $_ % 9 . "/$_", $_ % 4 ? "" : "new"); }
		open(my $f, ">>", "-rf"); print $f "more"; close $f; truncate("hole", 0); put("hole", ""); truncate("hole", 1 << 20) or die $!;
		unlink "loop"; symlink "loop2", "loop" or die $!; mkdir "empty"; mkdir "empty/dir" or die $!;
		exec "rm", "-r", "d";`
	w.ok(0, "exec perl -e '"+script+"'")
	cmd := exec.CommandContext(t.Context(), "perl", "-e", script)
	cmd.Dir = same
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	must(t, os.Remove(filepath.Join(w.dir, "fifo")))
	got, want := listed(t, w.dir), listed(t, same)
	if len(want) < 5634 {
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
