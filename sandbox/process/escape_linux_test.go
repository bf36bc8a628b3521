package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/event"
	"egressd/sandbox"
)

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

// TestSystemCalls tries what the system-call filter and the dropped
// capabilities forbid. Each wall is left out in turn: where only one of them
// stops the attack, it succeeds then.
func TestSystemCalls(t *testing.T) {
	vsock := strconv.Itoa(unix.AF_VSOCK)
	packet := strconv.Itoa(unix.AF_PACKET)
	for _, tt := range []struct {
		name    string
		attack  []string
		without []string // with these walls out it must succeed; nil: other walls stop it too
	}{
		{"vsock", []string{"socket", vsock, "1"}, nil},   // many kernels have none
		{"packet", []string{"socket", packet, "3"}, nil}, // not even the init may
		{"raw ip", []string{"socket", "2", "3"}, nil},
		{"bluetooth", []string{"socket", "31", "1"}, nil},
		{"alg", []string{"socket", "38", "5"}, nil},
		{"io_uring", []string{"io_uring"}, []string{"seccomp"}},
		{"bpf", []string{"bpf"}, nil},
		{"userfaultfd", []string{"userfault"}, nil},
		{"perf", []string{"perf"}, nil},
		{"unshare user", []string{"unshare", strconv.Itoa(unix.CLONE_NEWUSER)}, nil}, // the attacker is multi-threaded
		{"clone user", []string{"clone-userns"}, []string{"seccomp"}},
		{"unshare net", []string{"unshare", strconv.Itoa(unix.CLONE_NEWNET)}, []string{"seccomp", "caps"}},
		{"mount", []string{"mount"}, []string{"seccomp", "caps", "landlock"}},
		{"unmount", []string{"umount", "/tmp"}, []string{"seccomp", "caps", "landlock"}},
		{"remount", []string{"remount", "/proc/sys"}, []string{"seccomp", "caps", "landlock"}},
		{"setns of init", []string{"setns", "/proc/1/ns/net"}, nil},
		{"take lo down", []string{"netlink-route"}, []string{"caps"}},
		{"ptrace init", []string{"ptrace", "1"}, nil},
		{"memory of init", []string{"process-memory", "1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if ok, out := attack(t, &Backend{}, sandbox.Spec{}, tt.attack[0], tt.attack[1:]...); ok {
				t.Errorf("it worked: %s", out)
			}
			// Every wall by itself, where a second one stands.
			for _, w := range tt.without {
				if len(tt.without) == 1 {
					break
				}
				if ok, out := attack(t, without(w), sandbox.Spec{}, tt.attack[0], tt.attack[1:]...); ok && !(w == "caps" && tt.name == "take lo down") {
					t.Errorf("without %s it worked: %s", w, out)
				}
			}
			if tt.without == nil {
				return
			}
			if ok, out := attack(t, without(tt.without...), sandbox.Spec{}, tt.attack[0], tt.attack[1:]...); !ok {
				t.Errorf("without %v it was stopped all the same, so this test shows nothing: %s", tt.without, out)
			}
		})
	}
}

// TestInitSecrets looks into pid 1.
func TestInitSecrets(t *testing.T) {
	for _, tt := range []struct {
		attack []string
	}{
		{[]string{"read", "/proc/1/environ"}},
		{[]string{"read", "/proc/1/maps"}},
		{[]string{"readlink", "/proc/1/fd/0"}},
		{[]string{"readlink", "/proc/1/exe"}},
		{[]string{"readlink", "/proc/1/cwd"}},
		{[]string{"write-open", "/proc/1/mem"}},
	} {
		t.Run(tt.attack[1], func(t *testing.T) {
			if ok, out := attack(t, &Backend{}, sandbox.Spec{}, tt.attack[0], tt.attack[1:]...); ok {
				t.Errorf("it worked: %s", out)
			}
			if ok, out := attack(t, without("dumpable"), sandbox.Spec{}, tt.attack[0], tt.attack[1:]...); !ok {
				t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
}

// TestHostFiles tries to write settings of the host.
func TestHostFiles(t *testing.T) {
	paths := []string{"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/proc/sys/kernel/pid_max"}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			if _, err := os.Stat(path); err != nil {
				t.Skip("not here")
			}
			if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "write-open", path); ok {
				t.Errorf("it worked: %s", out)
			}
			if os.Geteuid() != 0 || path == "/sys/kernel/uevent_helper" {
				return // the file's mode stops an ordinary user
			}
			if ok, out := attack(t, without("procsys"), sandbox.Spec{}, "write-open", path); !ok {
				t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
}

// TestUnixSockets connects to servers of the host.
func TestUnixSockets(t *testing.T) {
	tmp := filepath.Join(tempDir(t, "/tmp"), "docker.sock")
	listenUnix(t, tmp)
	work := tempDir(t, "/tmp")
	inWork := filepath.Join(work, "agent.sock")
	listenUnix(t, inWork)
	home := tempDir(t, "/var/tmp")
	if err := os.Mkdir(filepath.Join(home, ".gnupg"), 0o700); err != nil {
		t.Fatal(err)
	}
	inHome := filepath.Join(home, ".gnupg", "S.gpg-agent")
	listenUnix(t, inHome)
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin"}}
	for _, tt := range []struct{ name, path, wall string }{
		{"in /tmp", tmp, "private"},
		{"named in /tmp", tmp, ""}, // argv names it: sockets are never brought back
		{"in the working directory", inWork, "sockets"},
		{"under HOME", inHome, "sockets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if ok, out := attack(t, &Backend{}, spec, "connect-unix", tt.path); ok {
				t.Errorf("it worked: %s", out)
			}
			if tt.wall == "" {
				return
			}
			b := without(tt.wall)
			if tt.wall == "private" {
				b = without("private", "binds", "sockets")
			}
			if ok, out := attack(t, b, spec, "connect-unix", tt.path); !ok {
				t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
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
		if ok, out := attack(t, without("sockets"), spec, "connect-unix", path); !ok {
			t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
		}
	})
}

// TestHostProcesses looks for the host's processes and signals them.
func TestHostProcesses(t *testing.T) {
	marker := fmt.Sprintf("86%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), "sleep", marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if ok, out := attackOutside(t, "host-process", marker); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "host-process", marker); ok {
		t.Errorf("it worked: %s", out)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	if ok, out := attackOutside(t, "signal", pid); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "signal", pid); ok {
		t.Errorf("it worked: %s", out)
	}
	// "kill 0" and "kill -1" reach the harness and what it started, nobody else.
	for _, target := range []string{"0", "-1"} {
		if res := sh(t, &Backend{}, "kill -9 "+target); res.err != nil || res.ExitCode != 128+9 && target == "0" {
			t.Errorf("kill %s: exit %d, %v", target, res.ExitCode, res.err)
		}
	}
	// Nothing that can be sent to pid 1 ends it.
	res := sh(t, &Backend{}, "for s in HUP INT QUIT TERM USR1 USR2 ALRM PIPE KILL STOP; do kill -$s 1; done; sleep 0.1; exit 7")
	if res.ExitCode != 7 {
		t.Errorf("signals to pid 1: exit %d (%v): %s", res.ExitCode, res.err, res.out)
	}
}

// TestSharedMemory looks for System V and POSIX objects of the host.
func TestSharedMemory(t *testing.T) {
	const key = 0x65677265
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Skipf("no System V shared memory here: %v", err)
	}
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	k := strconv.Itoa(key)
	if ok, out := attackOutside(t, "shm", k); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "shm", k); ok {
		t.Errorf("it worked: %s", out)
	}
	file := filepath.Join("/dev/shm", fmt.Sprintf("process-test-%d", os.Getpid()))
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "read", file); ok {
		t.Errorf("it worked: %s", out)
	}
	if ok, out := attack(t, without("dev"), sandbox.Spec{}, "read", file); !ok {
		t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
	}
}

// TestKeyring looks for a key in the session keyring of whoever started the
// launcher. The system-call filter stops it too.
func TestKeyring(t *testing.T) {
	const variable = "KEYRING_TEST"
	description := os.Getenv(variable)
	if description == "" {
		// Keyrings belong to threads, and the init is started by another one: the
		// test goes on in a process that was born with the keyring.
		description = fmt.Sprintf("process-test-%d", os.Getpid())
		runtime.LockOSThread() // not given back
		if _, err := unix.KeyctlJoinSessionKeyring(description); err != nil {
			t.Skipf("no keyrings here: %v", err)
		}
		if _, err := unix.AddKey("user", description, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
			t.Skipf("no keyrings here: %v", err)
		}
		cmd := exec.CommandContext(t.Context(), self(t), "-test.run=^TestKeyring$")
		cmd.Env = append(os.Environ(), variable+"="+description)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if ok, out := attackOutside(t, "keyring", description); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	for _, b := range []*Backend{{}, without("seccomp"), without("keyring")} {
		if ok, out := attack(t, b, sandbox.Spec{}, "keyring", description); ok {
			t.Errorf("without %v it worked: %s", b.hooks.skip, out)
		}
	}
	if ok, out := attack(t, without("seccomp", "keyring"), sandbox.Spec{}, "keyring", description); !ok {
		t.Errorf("without the walls it was stopped all the same, so this test shows nothing: %s", out)
	}
}

// TestDescriptors leaves a descriptor open that the harness could inherit.
func TestDescriptors(t *testing.T) {
	f, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const fd = 77
	if err := unix.Dup3(int(f.Fd()), fd, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if ok, out := attackOutside(t, "descriptor", "77"); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "descriptor", "77"); ok {
		t.Errorf("it worked: %s", out)
	}
	res := sh(t, &Backend{}, "ls /proc/self/fd")
	if res.out != "0\n1\n2\n3\n" { // 3 is ls's own
		t.Errorf("descriptors inside: %q", res.out)
	}
}

// TestForkBomb asks for more processes than there may be.
func TestForkBomb(t *testing.T) {
	b := &Backend{hooks: testHooks{processes: 60}}
	ok, out := attack(t, b, sandbox.Spec{}, "fork-bomb", "600")
	if ok {
		t.Errorf("it worked: %s", out)
	}
	b = &Backend{hooks: testHooks{processes: 2000}}
	if ok, out := attack(t, b, sandbox.Spec{}, "fork-bomb", "600"); !ok {
		t.Errorf("with a wider bound it must work: %s", out)
	}
}

// TestDirect tries to reach a server of the host without the gate.
func TestDirect(t *testing.T) {
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("canary\n"))
			c.Close()
		}
	}()
	addr := ln.Addr().String()
	if ok, out := attackOutside(t, "tcp", addr); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	rec := new(recorder)
	b := &Backend{Events: rec}
	if ok, out := attack(t, b, sandbox.Spec{}, "tcp", addr); ok {
		t.Errorf("it worked: %s", out)
	}
	attack(t, b, sandbox.Spec{}, "tcp", "203.0.113.9:22")
	if !rec.find(func(e event.Event) bool {
		return e.Door == event.DoorTransparent && e.Decision == event.Blocked && e.Port == 22
	}) {
		t.Errorf("no event for the captured connection: %+v", rec.events)
	}
	attack(t, b, sandbox.Spec{}, "udp", "203.0.113.9:443")
	if !rec.find(func(e event.Event) bool {
		return e.Door == event.DoorKernel && e.Proto == "udp" && e.Port == 443 && e.Decision == event.Blocked && e.Isolation == "netns"
	}) {
		t.Errorf("no event for the refused packet: %+v", rec.events)
	}
}

// waitGone waits until no process of this machine has marker in its command
// line.
func waitGone(t *testing.T, marker string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for findProcess(marker) == nil {
		select {
		case <-ctx.Done():
			t.Fatalf("a process with %q in its command line is still there", marker)
		case <-tick.C:
		}
	}
}

// TestSurvivors leaves daemons behind that ignore every signal they can.
func TestSurvivors(t *testing.T) {
	marker := fmt.Sprintf("87%d", os.Getpid())
	res := sh(t, &Backend{}, `
		trap "" TERM HUP INT
		setsid sh -c 'trap "" TERM HUP INT; (sleep `+marker+` &) ; sleep `+marker+`' >/dev/null 2>&1 &
		nohup sleep `+marker+` >/dev/null 2>&1 &
		exit 3`)
	if res.ExitCode != 3 || res.err != nil {
		t.Errorf("exit %d, %v: %s", res.ExitCode, res.err, res.out)
	}
	if findProcess(marker) == nil {
		t.Error("a process of the run is still there after Run")
	}
}

// TestLauncherKilled kills the launcher with what it cannot catch.
func TestLauncherKilled(t *testing.T) {
	needNamespaces(t)
	marker := fmt.Sprintf("88%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), self(t), "launch", "/bin/sh", "-c", "echo up; sleep "+marker)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if findProcess(marker) != nil {
		t.Error("the harness is not there, so this test shows nothing")
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	waitGone(t, marker)
}

// TestWithoutUserNamespace is root in a container that may not make user
// namespaces: the other walls stand all the same.
func TestWithoutUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make the other namespaces without one")
	}
	b := func() *Backend { return &Backend{hooks: testHooks{noUserNS: true}} }
	res := sh(t, b(), "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; exit 3")
	want := "0\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
	if res.out != want || res.ExitCode != 3 {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	for _, a := range [][]string{
		{"write-open", "/proc/sys/kernel/core_pattern"},
		{"mount"},
		{"read", "/proc/1/environ"},
		{"readlink", "/proc/1/fd/0"},
		{"netlink-route"},
		{"clone-userns"},
		{"ptrace", "1"},
		{"write-open", "/sys/kernel/uevent_helper"},
		{"setns", "/proc/1/ns/net"},
	} {
		if ok, out := attack(t, b(), sandbox.Spec{}, a[0], a[1:]...); ok {
			t.Errorf("%v worked: %s", a, out)
		}
	}
}

// TestRunAs is root that hands the run to an ordinary user, as behind sudo.
func TestRunAs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	for _, noUserNS := range []bool{false, true} {
		b := &Backend{RunAs: &Cred{UID: 65534, GID: 65533, Groups: []uint32{65532}}, hooks: testHooks{noUserNS: noUserNS}}
		res := sh(t, b, "id -u; id -g; id -G; grep CapEff /proc/self/status; test -w /etc/passwd || echo read-only")
		if want := "65534\n65533\n65533 65532\nCapEff:\t0000000000000000\nread-only\n"; res.out != want || res.err != nil {
			t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
		}
	}
}
