package process

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

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
		if ok, out := attack(t, new(Backend), spec, "connect-unix", at(path)); ok {
			t.Errorf("%q: it worked: %s", path, out)
		}
		if ok, out := attack(t, without("sockets"), spec, "connect-unix", at(path)); !ok {
			t.Errorf("%q: stopped without the wall too: %s", path, out)
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
