package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

// enterNested runs attack name in a user, mount and process namespace of its own, with
// every capability there. uid 0 may map nobody, and keeps a capability without, ambient.
func enterNested(name string) error {
	cmd := exec.Command("/proc/self/exe", "attack", name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	return cmd.Run()
}

// mountFreshProc mounts a new /proc on /tmp.
func mountFreshProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	if err := unix.Mount("proc", "/tmp", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("proc: %w", err)
	}
	return nil
}

// useFreshProc looks for what a /proc of which nothing is covered gives away: settings of
// the machine or of the sandbox's network, memory, processes outside its namespace.
func useFreshProc() error {
	if err := mountFreshProc(); err != nil {
		return err
	}
	var found []string
	may := func(path string, mode uint32) {
		if unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS) == nil {
			found = append(found, path)
		}
	}
	err := filepath.WalkDir("/tmp/sys", func(path string, d fs.DirEntry, err error) error {
		switch name := strings.TrimPrefix(path, "/tmp/sys/"); {
		case err != nil:
			return nil //nolint:nilerr // out of reach for this user
		case name == "user": // bounds of this user namespace
			return fs.SkipDir
		case name == "kernel/ns_last_pid" || name == "kernel/pid_max": // of this process namespace
		case d.Type().IsRegular():
			may(path, unix.W_OK)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"kcore", "kmsg", "timer_list", "sysrq-trigger"} {
		may("/tmp/"+name, unix.R_OK)
		may("/tmp/"+name, unix.W_OK)
	}
	if exe, err := os.Readlink("/tmp/1/exe"); err != nil || !strings.HasSuffix(exe, "process.test") {
		found = append(found, fmt.Sprintf("process 1 of another namespace (%s, %v)", exe, err))
	}
	if len(found) == 0 {
		return errors.New("the new /proc gives nothing away")
	}
	fmt.Println(len(found), "found:", strings.Join(found[:min(8, len(found))], " "))
	return nil
}

// TestNestedProc mounts a /proc in a sandbox within the sandbox, as bwrap --proc does,
// and tries what may be done with it.
func TestNestedProc(t *testing.T) {
	if worked, out := attackOutside(t, "nested-proc"); !worked {
		t.Skipf("this machine mounts no /proc in other namespaces: %s", out)
	}
	nested := func() *Backend { return &Backend{Nested: true} }
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "nested-proc"); ok {
		t.Errorf("without Nested: %s", out)
	}
	if ok, out := attack(t, nested(), sandbox.Spec{}, "nested-proc"); ok != (os.Geteuid() != 0) {
		t.Errorf("a /proc was mounted: %v, as uid %d: %s", ok, os.Geteuid(), out)
	}
	if ok, out := attack(t, nested(), sandbox.Spec{}, "use-nested-proc"); ok {
		t.Errorf("it gives away what it must not: %s", out)
	}
	if os.Geteuid() != 0 {
		if res := sh(t, nested(), "grep ' /dev/shm' /proc/self/mountinfo | grep -c proc; ls -a /dev/shm | grep -c proc"); res.out != "1\n0\n" {
			t.Errorf("the second /proc: %q, want one, that no path leads to", res.out)
		}
		return
	}
	asUser(t, nested())
	// The attack succeeds for uid 0 where it gets the second /proc like everybody else.
	unguarded := without("rootproc")
	unguarded.Nested = true
	if ok, out := attack(t, unguarded, sandbox.Spec{}, "use-nested-proc"); !ok {
		t.Errorf("this test shows nothing: %s", out)
	}
}

// asUser tries it for root that hands the run to an ordinary user.
func asUser(t *testing.T, b *Backend) {
	t.Helper()
	dir := tempDir(t, "/var/tmp")
	data, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "process.test")
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"nested-proc": attackSucceeded, "use-nested-proc": attackStopped} {
		res := run(t, b, sandbox.Spec{Argv: []string{exe, "attack", name}, Dir: dir, RunAs: &sandbox.Cred{UID: 65534, GID: 65534}})
		if res.err != nil || res.ExitCode != want {
			t.Errorf("%s as an ordinary user: exit %d, want %d, %v: %s", name, res.ExitCode, want, res.err, res.out)
		}
	}
}
