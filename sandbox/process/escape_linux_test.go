package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/event/eventtest"
	"egressd/gate"
	"egressd/sandbox"
)

// TestSystemCalls tries what the system-call filter and the dropped
// capabilities forbid. Each layer is left out in turn: where only one of them
// stops the attack, it succeeds then.
func TestSystemCalls(t *testing.T) {
	vsock := strconv.Itoa(unix.AF_VSOCK)
	packet := strconv.Itoa(unix.AF_PACKET)
	for _, tt := range []struct {
		name    string
		attack  []string
		without []string // with these layers out it must succeed; nil: other layers stop it too
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
		{"unmount", []string{"umount", "/tmp"}, []string{"seccomp", "caps", "landlock", "replaced"}},
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
			// Every layer by itself, where a second one stands.
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
				t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
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
				t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
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
		t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
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
		t.Errorf("without the layers it was stopped all the same, so this test shows nothing: %s", out)
	}
}

// TestDescriptors leaves a descriptor open that the program could inherit.
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
	b := &Backend{Gate: gate.Config{Events: rec}}
	if ok, out := attack(t, b, sandbox.Spec{}, "tcp", addr); ok {
		t.Errorf("it worked: %s", out)
	}
	attack(t, b, sandbox.Spec{}, "tcp", "203.0.113.9:22")
	if !rec.find(func(e eventtest.Line) bool {
		return e.Door == "transparent" && e.Decision == "blocked" && e.Port == 22
	}) {
		t.Errorf("no event for the captured connection: %+v", rec.events)
	}
	attack(t, b, sandbox.Spec{}, "udp", "203.0.113.9:443")
	if !rec.find(func(e eventtest.Line) bool {
		return e.Door == "kernel" && e.Proto == "udp" && e.Port == 443 && e.Decision == "blocked" && e.Isolation == "netns"
	}) {
		t.Errorf("no event for the refused packet: %+v", rec.events)
	}
}
