package process

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// tempDir is a directory below parent that anybody may enter.
func tempDir(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "process-test")
	if err != nil {
		t.Skipf("can't make a directory in %s: %v", parent, err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// outsideDir is a directory that no private root hides.
func outsideDir(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{"/var/lib", "/srv", "/opt", "/dev/shm/.."} {
		if unix.Access(parent, unix.W_OK) == nil {
			return tempDir(t, parent)
		}
	}
	t.Skip("no writable directory outside /tmp, /run and /dev for this user")
	return ""
}
