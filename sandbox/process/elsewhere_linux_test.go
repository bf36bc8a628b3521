package process

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The machine's own file systems, mounted where nobody expects them.
func TestKernelFilesElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount what this test hides")
	}
	needNamespaces(t)
	dir := outsideDir(t)
	for _, m := range []struct {
		kind, file string
		layer      string // that is taken away to see that the test can fail
	}{
		{"proc", "sys/kernel/core_pattern", "elsewhere"},
		{"sysfs", "kernel/uevent_seqnum", "elsewhere"},
		{"tmpfs", "null", "devices"},
	} {
		at := filepath.Join(dir, m.kind)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(m.kind, at, m.kind, 0, ""); err != nil {
			t.Skipf("mount: %v", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		path := filepath.Join(at, m.file)
		if m.kind == "tmpfs" {
			if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
				t.Fatal(err)
			}
		}
		if sh(t, new(Backend), "cat "+path).ExitCode == 0 {
			t.Errorf("%s at %s: %s was read", m.kind, at, m.file)
		}
		if res := sh(t, without(m.layer), "cat "+path); res.ExitCode != 0 {
			t.Errorf("%s: stopped without the layer too: %s", m.kind, res.out)
		}
	}
}
