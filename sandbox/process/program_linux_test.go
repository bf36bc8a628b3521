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

// TestProgramIsWhole starts programs that lie in private directories, and need what is
// installed with them.
func TestProgramIsWhole(t *testing.T) {
	needNamespaces(t)
	dir := tempDir(t, "/tmp")
	files := map[string]string{
		"one/prog":     "#!/bin/sh\ncat \"${0%/*}/beside\"\n",
		"one/beside":   "beside",
		"two/bin/run":  "#!/bin/sh\ncat \"${0%/*}/../lib/part\"\n",
		"two/lib/part": "part",
		"four/lib/node_modules/agent/bin/agent.js": "#!/bin/sh\ncat \"$(dirname \"$(readlink -f \"$0\")\")/../../agent-linux/native\"\n",
		"four/lib/node_modules/agent-linux/native": "native",
		"five/main.sh": "cat \"${0%/*}/data\"\n",
		"five/data":    "data",
		"hand/bin/run": "#!/bin/sh\ncat \"${0%/*}/../left\" 2>/dev/null\necho ran\n",
		"hand/left":    "left over by another program",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"three/bin/agent": "../middle/agent", "three/middle/agent": dir + "/four/lib/node_modules/agent/bin/agent.js",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	path := func(p string) []string {
		return []string{"PATH=" + p + ":/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=/tmp"}
	}
	for _, c := range []struct {
		what, want string
		argv, env  []string
	}{
		{"a file beside it", "beside", []string{dir + "/one/prog"}, nil},
		{"beside its bin directory", "part", []string{dir + "/two/bin/run"}, nil},
		{"found on PATH", "part", []string{"run"}, path(dir + "/two/bin")},
		{"found on PATH by a shell", "part", []string{"/bin/sh", "-c", "run"}, path(dir + "/two/bin")},
		{"links to a package of Node", "native", []string{dir + "/three/bin/agent"}, nil},
		{"a script for an interpreter", "data", []string{"sh", dir + "/five/main.sh"}, nil},
		{"installed in TMPDIR", "ran\n", []string{dir + "/hand/bin/run"}, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + dir + "/hand"}},
	} {
		res := run(t, &Backend{}, sandbox.Spec{Argv: c.argv, Env: c.env})
		if res.err != nil || res.ExitCode != 0 || res.out != c.want {
			t.Errorf("%s: exit %d, %v, %q, want %q", c.what, res.ExitCode, res.err, res.out, c.want)
		}
	}
	homeAt := []string{"PATH=" + dir + "/hand/bin:/usr/bin:/bin", "HOME=" + dir + "/hand/home"}
	if res := run(t, &Backend{}, sandbox.Spec{Argv: []string{"run"}, Env: homeAt}); res.out != "ran\n" {
		t.Errorf("beside HOME: %q", res.out)
	}
	// Where everybody may write, others leave files.
	if err := os.Chmod(dir+"/hand", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prog, want string
		warned     bool
	}{{"/hand/bin/run", "ran\n", true}, {"/two/bin/run", "part", false}} {
		var log bytes.Buffer
		b := &Backend{Gate: gate.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		res := run(t, b, sandbox.Spec{Argv: []string{dir + c.prog}})
		if warned := strings.Contains(log.String(), "only this directory is there"); res.out != c.want || warned != c.warned {
			t.Errorf("%s: %q, warned %v: %s", c.prog, res.out, warned, log.String())
		}
	}
}
