package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

// TestLostSockets connects to sockets that are not where the kernel says.
func TestLostSockets(t *testing.T) {
	home := tempDir(t, "/var/tmp")
	at := func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }
	for _, dir := range []string{"relative/a/b", "moved/a/b", "linked/a/b", "odd/a/\xff", "odd/a/\n"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(at("relative/a/b"))
	listenUnix(t, "s")
	listenUnix(t, at("moved/a/b/s"))
	listenUnix(t, at("linked/a/b/s"))
	listenUnix(t, at("odd/a/\xff/s"))
	listenUnix(t, at("odd/a/\n/s"))
	if err := os.Rename(at("moved"), at("elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(at("linked/a/b/s"), at("linked/a/second")); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Dir: "/", Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
	for _, path := range []string{"relative/a/b/s", "elsewhere/a/b/s", "linked/a/second", "odd/a/\xff/s", "odd/a/\n/s"} {
		for _, b := range []*Backend{new(Backend), without("connect"), without("sockets")} {
			if ok, out := attack(t, b, spec, "connect-unix", at(path)); ok {
				t.Errorf("%q: it worked without %v: %s", path, b.hooks.skip, out)
			}
		}
		if ok, out := attack(t, without("sockets", "connect"), spec, "connect-unix", at(path)); !ok {
			t.Errorf("%q: stopped without the layer too: %s", path, out)
		}
	}
}

// A bind by another name shows the same sockets a second time.
func TestSocketsThroughLink(t *testing.T) {
	real := outsideDir(t)
	deep := filepath.Join(real, "a/b/c")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	listenUnix(t, filepath.Join(deep, "s"))
	link := filepath.Join(tempDir(t, "/tmp"), "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Dir: link, Env: []string{"PATH=/usr/bin:/bin"}}
	if ok, out := attack(t, new(Backend), spec, "connect-unix", filepath.Join(link, "a/b/c/s")); ok {
		t.Errorf("it worked: %s", out)
	}
	// The link inside a directory that is brought back as well.
	spec.Env = append(spec.Env, "X="+filepath.Dir(link))
	spec.Argv = []string{"/bin/sh", "-c", "pwd -P"}
	if res := run(t, new(Backend), spec); res.err != nil || res.out != real+"\n" {
		t.Errorf("%q, %v", res.out, res.err)
	}
}

// Sockets that a private root hides anyway do not count.
func TestManySockets(t *testing.T) {
	dir := tempDir(t, "/tmp")
	for i := range control.MaxMasks + 1 {
		ln, err := net.Listen("unix", filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Skipf("after %d: %v", i, err)
		}
		defer ln.Close()
	}
	if res := sh(t, new(Backend), "true"); res.err != nil || res.ExitCode != 0 {
		t.Error(res.err, res.out)
	}
}

// listenUnix listens at path (or "@name") on the host until the test ends.
func listenUnix(t *testing.T, path string) {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
}

// TestUnixSockets connects to servers of the host.
func TestUnixSockets(t *testing.T) {
	tmp := filepath.Join(tempDir(t, "/tmp"), "docker.sock")
	listenUnix(t, tmp)
	work := tempDir(t, "/tmp")
	inWork := filepath.Join(work, "agent.sock")
	listenUnix(t, inWork)
	home := tempDir(t, "/var/tmp")
	if err := os.Mkdir(filepath.Join(home, ".colima"), 0o700); err != nil {
		t.Fatal(err)
	}
	inHome := filepath.Join(home, ".colima", "docker.sock")
	listenUnix(t, inHome)
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
	for _, tt := range []struct{ name, path, layer string }{
		{"in /tmp", tmp, "private"},
		{"named in /tmp", tmp, ""}, // argv names it: sockets are never brought back
		{"in the working directory", inWork, "sockets"},
		{"under HOME", inHome, "sockets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if ok, out := attack(t, &Backend{}, spec, "connect-unix", tt.path); ok {
				t.Errorf("it worked: %s", out)
			}
			if tt.layer == "" {
				return
			}
			b := without(tt.layer, "connect")
			if tt.layer == "private" {
				b = without("private", "binds", "sockets", "connect")
			}
			if ok, out := attack(t, b, spec, "connect-unix", tt.path); !ok {
				t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
	t.Run("abstract", func(t *testing.T) {
		name := fmt.Sprintf("@process-test-%d", os.Getpid())
		listenUnix(t, name)
		if ok, out := attackOutside(t, "connect-unix", name); !ok {
			t.Fatalf("outside it must work: %s", out)
		}
		for _, b := range []*Backend{{}, without("landlock"), without("seccomp")} {
			if ok, out := attack(t, b, spec, "connect-unix", name); ok {
				t.Errorf("it worked: %s", out)
			}
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		path := filepath.Join(outsideDir(t), "daemon.sock")
		listenUnix(t, path)
		if ok, out := attack(t, &Backend{}, spec, "connect-unix", path); ok {
			t.Errorf("it worked: %s", out)
		}
		if ok, out := attack(t, without("sockets", "connect"), spec, "connect-unix", path); !ok {
			t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
		}
	})
}

// TestFIFO opens a FIFO of the working directory to write to its reader outside.
// One that argv names is the program's.
func TestFIFO(t *testing.T) {
	work := tempDir(t, "/tmp")
	path := filepath.Join(work, "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(reader)
	for _, tt := range []struct {
		name  string
		b     *Backend
		argv  []string
		heard bool
	}{
		{"found", new(Backend), []string{"/bin/sh", "-c", `set -- fif*; echo out >"$1"`}, false},
		{"found, without the layer", without("sockets"), []string{"/bin/sh", "-c", `set -- fif*; echo out >"$1"`}, true},
		{"named", new(Backend), []string{"/bin/sh", "-c", `echo out >"$0"`, "fifo"}, true},
	} {
		res := run(t, tt.b, sandbox.Spec{Argv: tt.argv, Dir: work, Env: []string{"PATH=/usr/bin:/bin"}})
		var buf [16]byte
		n, err := unix.Read(reader, buf[:])
		if heard := err == nil && n > 0; heard != tt.heard {
			t.Errorf("%s: heard %v: %q, %v: %s", tt.name, heard, buf[:max(n, 0)], err, res.out)
		}
	}
}
