package pod

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/test/userns"
)

const (
	insideEnv   = "POD_TEST_INSIDE"   // this is the suite, as root of a user namespace
	attackerEnv = "POD_TEST_ATTACKER" // this is no suite, but an agent's program
)

// forbidden says why namespaces can't be made here; "" when they can.
var forbidden string

// TestMain runs the tests of an ordinary user again as root of a new user
// namespace, where network namespaces may be made.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(attackerEnv) != "":
		os.Exit(attacker())
	case os.Geteuid() == 0 || os.Getenv(insideEnv) != "":
		os.Exit(m.Run())
	}
	code, err := userns.Rerun(unix.CLONE_NEWNET, append(os.Environ(), insideEnv+"=1"))
	if err != nil {
		forbidden = err.Error()
		code = m.Run()
	}
	os.Exit(code)
}

// asRoot reports whether other users can be had: the suite runs as root, not
// as root of a user namespace with a single user.
func asRoot() bool { return os.Getenv(insideEnv) == "" }

// freshNamespace moves the test's thread into an empty network namespace. The
// thread dies with the test's goroutine, so nothing needs to be restored.
func freshNamespace(t testing.TB) {
	t.Helper()
	if forbidden != "" {
		t.Skip("this kernel does not let us make namespaces: " + forbidden)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}
