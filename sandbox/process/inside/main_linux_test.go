package inside

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/test/userns"
)

// forbidden says why mount namespaces can't be made here; "" when they can.
var forbidden string

const reexecEnv = "INSIDE_TEST_NAMESPACE"

// TestMain runs the tests again as root of a new user namespace with its own
// mounts, where mounting harms nobody.
func TestMain(m *testing.M) {
	if os.Getenv(reexecEnv) != "" || os.Getenv(signalsEnv) != "" {
		os.Exit(m.Run())
	}
	code, err := userns.Rerun(unix.CLONE_NEWNS, append(os.Environ(), reexecEnv+"=1"))
	if err != nil {
		forbidden = err.Error()
		code = m.Run()
	}
	os.Exit(code)
}

// freshMounts gives the test's thread mounts of its own and a builder for them.
// The thread dies with the test's goroutine, so nothing needs to be undone.
func freshMounts(t *testing.T) *builder {
	t.Helper()
	if forbidden != "" {
		t.Skip("this kernel does not let us make namespaces: " + forbidden)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Skipf("needs mounts of its own: %v", err)
	}
	if err := makePrivate(); err != nil {
		t.Fatal(err)
	}
	return &builder{initProcess: &initProcess{}, cgroup: -1}
}

// host makes files below a new directory, which stands for the host. A name that
// ends in "/" is a directory.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "inside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // from a thread that sees no mount on it
		done := make(chan error)
		go func() { done <- os.RemoveAll(dir) }()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for name, content := range files {
		path := dir + "/" + name
		if err := mountPoint(path, name[len(name)-1] == '/'); err != nil {
			t.Fatal(err)
		}
		if name[len(name)-1] == '/' {
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// refuses checks that writing to path fails with want.
func refuses(t *testing.T, path string, want error) {
	t.Helper()
	if err := os.WriteFile(path, []byte("changed"), 0o644); !errors.Is(err, want) {
		t.Errorf("write to %s: %v, want %v", path, err, want)
	}
}
