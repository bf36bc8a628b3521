//go:build linux

package netns

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"

	"egressd/test/userns"
)

// forbidden says why namespaces can't be made here; "" when they can.
var forbidden string

const reexecEnv = "NETNS_TEST_INSIDE"

// TestMain runs the tests of an ordinary user again as root of a new user
// namespace, where network namespaces may be made.
func TestMain(m *testing.M) {
	if os.Geteuid() == 0 || os.Getenv(reexecEnv) != "" {
		os.Exit(m.Run())
	}
	code, err := userns.Rerun(unix.CLONE_NEWNET, append(os.Environ(), reexecEnv+"=1"))
	if err != nil {
		forbidden = err.Error()
		code = m.Run()
	}
	os.Exit(code)
}

// freshNamespace moves the test's thread into an empty network namespace. The
// thread dies with the test's goroutine, so nothing needs to be restored.
func freshNamespace(t *testing.T) {
	t.Helper()
	if forbidden != "" {
		t.Skip("this kernel does not let us make namespaces: " + forbidden)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("needs CAP_SYS_ADMIN to make a network namespace")
		}
		t.Fatal(err)
	}
}

// setup is Setup in a fresh namespace.
func setup(t *testing.T, c capture.Config) *capture.Doors {
	t.Helper()
	freshNamespace(t)
	d, err := capture.Setup(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
