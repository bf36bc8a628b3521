package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/gate"
	"egressd/sandbox"
)

// elsewhere starts a server that listens at path in another network namespace, as
// a container's would, until the test ends.
func elsewhere(t *testing.T, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urn", self(t), "attack", "serve-unix", path)
	if os.Geteuid() == 0 {
		cmd = exec.CommandContext(t.Context(), "unshare", "-n", self(t), "attack", "serve-unix", path)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no unshare: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal("the server did not start")
	}
}

// TestSocketsElsewhere connects to servers of other network namespaces, at any
// depth of the working directory.
func TestSocketsElsewhere(t *testing.T) {
	needNamespaces(t)
	work := tempDir(t, "/tmp")
	spec := sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}}
	dir := work
	// A mask stands in the way where one is found at the start.
	unguarded := without("connect", "sockets")
	for _, depth := range []string{"1", "2", "3", "4", "5"} {
		dir = filepath.Join(dir, "d"+depth)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "s")
		elsewhere(t, path)
		if ok, out := attack(t, without("sockets"), spec, "connect-unix", path); ok {
			t.Errorf("depth %s: it worked: %s", depth, out)
		}
		if ok, out := attack(t, unguarded, spec, "connect-unix", path); !ok {
			t.Errorf("depth %s: stopped without the layer too: %s", depth, out)
		}
	}
}

// TestSocketTold looks for the record of a refused socket: one, however often it
// is tried, by the name that the file has.
func TestSocketTold(t *testing.T) {
	work := tempDir(t, "/tmp")
	if err := os.Mkdir(filepath.Join(work, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "d", "s")
	elsewhere(t, path)
	if err := os.Symlink(path, filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	rec := new(recorder)
	b := &Backend{Gate: gate.Config{Events: rec}}
	res := run(t, b, sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}, Argv: []string{
		"/bin/sh", "-c",
		`for p in d/s link ./d/../d/s; do "$0" attack connect-unix $p; done`, self(t),
	}})
	told := 0
	for _, e := range rec.events {
		if e.Type == "file.refused" {
			told++
			if e.Path != path || e.Reason != "socket" || e.Wanted != "write" || e.Isolation != "netns" {
				t.Errorf("%+v", e)
			}
		}
	}
	if told != 1 {
		t.Errorf("told %d times: %s", told, res.out)
	}
}

// TestLateSocket connects to a socket of the host that was made after the start.
func TestLateSocket(t *testing.T) {
	for _, b := range []*Backend{new(Backend), without("connect")} {
		work := tempDir(t, "/tmp")
		made := make(chan struct{})
		go func() {
			defer close(made)
			for range 500 {
				if _, err := os.Stat(filepath.Join(work, "started")); err == nil {
					listenUnix(t, filepath.Join(work, "bound"))
					if err := os.Rename(filepath.Join(work, "bound"), filepath.Join(work, "late")); err != nil { // it listens by then
						t.Error(err)
					}
					return
				}
				time.Sleep(10 * time.Millisecond) // polling: somebody inside makes it
			}
		}()
		ok, out := attack(t, b, sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}}, "connect-late", work)
		<-made
		if skipped := b.hooks.skip != nil; ok != skipped {
			t.Errorf("connected: %v without the layer: %v: %s", ok, skipped, out)
		}
	}
}

// TestConnectRaces changes address and descriptor while pid 1 looks at them.
func TestConnectRaces(t *testing.T) {
	for _, race := range []string{"race-address", "race-descriptor", "race-path"} {
		work := tempDir(t, "/tmp")
		elsewhere(t, filepath.Join(work, "s"))
		spec := sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}}
		if ok, out := attack(t, without("sockets"), spec, race, work); ok {
			t.Errorf("%s: it worked: %s", race, out)
		}
		if ok, out := attack(t, without("connect", "sockets"), spec, race, work); !ok {
			t.Errorf("%s: stopped without the layer too: %s", race, out)
		}
	}
}

// TestConnectUndumpable connects from a process that pid 1 may not look into.
func TestConnectUndumpable(t *testing.T) {
	work := tempDir(t, "/tmp")
	path := filepath.Join(work, "s")
	elsewhere(t, path)
	spec := sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin"}}
	if ok, out := attack(t, without("sockets"), spec, "connect-undumpable", path); ok {
		t.Errorf("it worked: %s", out)
	}
	if ok, out := attack(t, without("connect", "sockets"), spec, "connect-undumpable", path); !ok {
		t.Errorf("stopped without the layer too: %s", out)
	}
}

// TestSocketsInside is what programs do among themselves, which goes on working.
func TestSocketsInside(t *testing.T) {
	work := tempDir(t, "/tmp")
	for _, where := range []string{work, "ip"} {
		res := run(t, new(Backend), sandbox.Spec{Argv: []string{self(t), "attack", "sockets-inside", where}, Dir: work, Env: []string{"PATH=/usr/bin:/bin"}})
		if res.err != nil || res.ExitCode != attackSucceeded {
			t.Errorf("%s: exit %d, %v: %s", where, res.ExitCode, res.err, strings.TrimSpace(res.out))
		}
	}
}

// TestSocketsNested connects within a network namespace that was made inside, and
// from there to a socket outside the sandbox.
func TestSocketsNested(t *testing.T) {
	needNamespaces(t)
	if os.Geteuid() == 0 {
		t.Skip("the kernel lets uid 0 map itself only with CAP_SETFCAP; the run as an ordinary user tries this")
	}
	work := tempDir(t, "/tmp")
	path := filepath.Join(work, "s")
	elsewhere(t, path)
	for _, tt := range []struct {
		attack, arg string
		works       bool
	}{{"sockets-inside", work, true}, {"connect-unix", path, false}} {
		b := without("sockets")
		b.Nested = true
		res := run(t, b, sandbox.Spec{Argv: []string{"/bin/sh", "-c", `unshare -Urn "$@"`, "sh", self(t), "attack", tt.attack, tt.arg}, Dir: work, Env: []string{"PATH=/usr/bin:/bin"}})
		if strings.Contains(res.out, "SUCCEEDED") != tt.works {
			t.Errorf("%s: exit %d, %v: %s", tt.attack, res.ExitCode, res.err, res.out)
		}
	}
}
