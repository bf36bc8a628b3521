package process

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/gate"
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
		b := &Backend{Gate: gate.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
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

// TestPrivateTmp shows what is brought back into /tmp and what is not.
func TestPrivateTmp(t *testing.T) {
	base := tempDir(t, "/tmp")
	write := func(name, text string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("work/a", "in work")
	write("secret", "secret")
	named := write("named", "named")
	viaEnv := write("ca.pem", "ca")
	tool := write("tools/tool", "#!/bin/sh\n. \"$(dirname \"$0\")/part\"\n")
	write("tools/part", "echo parts together\n")
	if err := os.Symlink(named, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	env := []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "MY_CA=" + viaEnv}
	script := func(b *Backend, text string, args ...string) result {
		return run(t, b, sandbox.Spec{Dir: work, Env: env, Argv: append([]string{"/bin/sh", "-c", text, "sh"}, args...)})
	}
	for _, tt := range []struct{ name, script, arg, want string }{
		{"working directory", "cat a; echo new >b", "", "in work"},
		{"not named", "cat ../secret 2>&1 || true", "", "cat: ../secret: No such file or directory\n"},
		{"named", "cat $1", named, "named"},
		{"named by a relative path", "cat $1", "../named", "named"},
		{"named behind =", "cat ${1#*=}", "--file=" + named, "named"},
		{"named by a link", "cat $1", filepath.Join(base, "link"), "named"},
		{"named by a variable", "cat $MY_CA", "", "ca"},
		{"named is read-only", "echo x >$1 || true", named, "sh: 1: cannot create " + named + ": Read-only file system\n"},
		{"program with what lies beside it", "$1", tool, "parts together\n"},
		{"writable", "echo x >/tmp/process-test-x && cat /tmp/process-test-x", "", "x\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{tt.arg}
			if tt.name == "program with what lies beside it" {
				res := run(t, &Backend{}, sandbox.Spec{Dir: work, Env: env, Argv: []string{tt.arg}})
				if res.out != tt.want {
					t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
				}
				return
			}
			if res := script(&Backend{}, tt.script, args...); res.out != tt.want {
				t.Errorf("%q, exit %d, %v; want %q", res.out, res.ExitCode, res.err, tt.want)
			}
		})
	}
	if data, _ := os.ReadFile(filepath.Join(work, "b")); string(data) != "new\n" {
		t.Errorf("what the program wrote in its working directory: %q", data)
	}
	if _, err := os.Stat("/tmp/process-test-x"); err == nil {
		t.Error("a file of the private /tmp is on the host")
	}
}
