// Package userns lets an ordinary user run tests that need root of some
// namespaces:
//
//	func TestMain(m *testing.M) {
//		if os.Getenv("INSIDE") != "" {
//			os.Exit(m.Run())
//		}
//		code, err := userns.Rerun(unix.CLONE_NEWNET, append(os.Environ(), "INSIDE=1"))
//		if err != nil {
//			code = m.Run() // whose tests skip with err as the reason
//		}
//		os.Exit(code)
//	}
package userns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Rerun runs this program again, with its arguments and the environment env, as
// root of a new user namespace that this user alone is mapped into, and of the
// other namespaces of flags (CLONE_NEW…). It reports the exit code, or why the
// kernel refuses such namespaces.
func Rerun(flags uintptr, env []string) (int, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return cmd.ProcessState.ExitCode(), nil
	}
	return 0, fmt.Errorf("user namespaces: %w", err)
}
