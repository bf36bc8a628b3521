package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
)

// TestDetourInTMPDIR makes no directory outside the private roots.
func TestDetourInTMPDIR(t *testing.T) {
	dir := outsideDir(t)
	made := filepath.Join(dir, "made")
	env := []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp/../" + made, "XDG_RUNTIME_DIR=/run/../" + made}
	res := run(t, &Backend{}, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: dir, Env: env})
	if res.err != nil || res.ExitCode != 0 {
		t.Fatalf("exit code %d, %v: %s", res.ExitCode, res.err, res.out)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("a detour in TMPDIR made a directory of the host")
	}
}

// TestPrivateWorkingDirectory says that an empty directory is what it is.
func TestPrivateWorkingDirectory(t *testing.T) {
	for dir, want := range map[string]bool{"/tmp": true, "/": false} {
		var log bytes.Buffer
		b := &Backend{Log: slog.New(slog.NewTextHandler(&log, nil))}
		if res := run(t, b, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: dir}); res.ExitCode != 0 {
			t.Fatalf("%s: exit code %d: %s", dir, res.ExitCode, res.out)
		}
		if got := strings.Contains(log.String(), "private inside"); got != want {
			t.Errorf("%s: warned %v, want %v: %s", dir, got, want, log.String())
		}
	}
}

// TestPrivateDirectoriesShareOneBound fills nothing: the sizes say it.
func TestPrivateDirectoriesShareOneBound(t *testing.T) {
	script := `for d in /tmp /var/tmp /run /dev/shm; do
	stat -f -c '%T %i %b' $d; stat -c '%a' $d; ls -A $d | wc -l
	touch $d/here && echo ok || echo no
done
echo x >/tmp/one; ls -A /dev/shm
grep -c ' tmpfs .*size=' /proc/self/mounts`
	res := run(t, &Backend{}, sandbox.Spec{Argv: []string{"/bin/sh", "-c", script}, Dir: "/"})
	if res.err != nil || res.ExitCode != 0 {
		t.Fatalf("exit code %d, %v: %s", res.ExitCode, res.err, res.out)
	}
	lines := strings.Split(strings.TrimSpace(res.out), "\n")
	if len(lines) != 18 {
		t.Fatalf("%d lines: %s", len(lines), res.out)
	}
	for i, mode := range []string{"1777", "1777", "755", "1777"} {
		if got := lines[4*i : 4*i+4]; got[0] != lines[0] || !strings.HasPrefix(got[0], "tmpfs ") || got[1] != mode {
			t.Errorf("directory %d: %q, want the file system %q with mode %s", i, got, lines[0], mode)
		}
	}
	if lines[16] != "here" {
		t.Errorf("/dev/shm holds %q: the directories are not apart", lines[16])
	}
}
