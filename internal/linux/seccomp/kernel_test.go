//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The filter can't be taken off again, so each probe runs in a process of its
// own: this test binary, told by its arguments what to do.
const asProbe = "SECCOMP_TEST_PROBE"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == asProbe {
		os.Exit(runProbe(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// runProbe installs the filter, all of it, none of it, or all but the rule
// named by filterName, and prints what the probe's call returns.
func runProbe(name, filterName string) int {
	runtime.LockOSThread() // no_new_privs is the thread's that installs
	if name == "no core" { // as the init does before
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if filterName != "none" {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			fmt.Println(err)
			return 1
		}
		install := func() error { return Install(Options{}) }
		if filterName != "all" {
			install = func() error { return installWithout(filterName) }
		}
		if err := install(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Print(describe(probes()[name].call()))
	return 0
}

func installWithout(name string) error {
	var rest []rule
	for _, r := range (Options{}).rules() {
		if r.name != name {
			rest = append(rest, r)
		}
	}
	return install(filter(rest))
}

func describe(err error) string {
	var e unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &e):
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// probe is one thing a program might do.
type probe struct {
	rule string // refused by this rule; "": by the filter as a whole
	call func() error
	want string // with the filter
	bare string // without it, or without its rule; "" when that depends on the machine
}

func sysno(nr uintptr, args ...uintptr) error {
	a := append(args, make([]uintptr, 6)...)
	_, _, e := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return e
	}
	return nil
}

func open(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

const killed = "killed by SIGSYS"

var commonProbes = map[string]probe{
	"vsock":         {"socket", func() error { return open(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }, "EAFNOSUPPORT", ""},
	"alg":           {"socket", func() error { return open(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }, "EAFNOSUPPORT", ""},
	"mptcp":         {"socket", func() error { return open(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) }, "EPROTONOSUPPORT", ""},
	"udp-lite":      {"socket", func() error { return open(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE) }, "EPROTONOSUPPORT", ""},
	"netfilter":     {"socket", func() error { return open(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER) }, "EPROTONOSUPPORT", ""},
	"uevent":        {"socket", func() error { return open(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) }, "EPROTONOSUPPORT", "ok"},
	"raw":           {"socket", func() error { return open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }, "EPERM", ""},
	"inet pair":     {"socketpair", func() error { _, err := unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0); return err }, "EAFNOSUPPORT", "ENOTSUP"},
	"typing":        {"ioctl", func() error { return sysno(unix.SYS_IOCTL, ^uintptr(0), unix.TIOCSTI) }, "EPERM", "EBADF"},
	"typing, high":  {"ioctl", func() error { return sysno(unix.SYS_IOCTL, ^uintptr(0), 1<<32|unix.TIOCSTI) }, "EPERM", "EBADF"},
	"io_uring":      {"io_uring_setup", func() error { return sysno(unix.SYS_IO_URING_SETUP, 1, 0) }, "ENOSYS", ""},
	"new userns":    {"unshare", unshareUser, "EPERM", "EINVAL"}, // EINVAL: the process has threads
	"clone userns":  {"clone", func() error { return cloneUser() }, "EPERM", ""},
	"clone3":        {"clone3", func() error { return sysno(unix.SYS_CLONE3, 0, 0) }, "ENOSYS", "EINVAL"},
	"setns":         {"setns", func() error { return unix.Setns(-1, unix.CLONE_NEWNET) }, "EPERM", "EBADF"},
	"mount":         {"mount", func() error { return unix.Mount("", "/absent", "", unix.MS_BIND, "") }, "EPERM", ""},
	"fsopen":        {"fsopen", func() error { _, err := unix.Fsopen("no such file system", 0); return err }, "EPERM", ""},
	"by handle":     {"open_by_handle_at", func() error { return sysno(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0) }, "EPERM", ""},
	"keyctl":        {"keyctl", func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); return err }, "EPERM", ""},
	"request_key":   {"request_key", func() error { _, err := unix.RequestKey("user", "absent", "", 0); return err }, "EPERM", ""},
	"bpf":           {"bpf", func() error { return sysno(unix.SYS_BPF, ^uintptr(0)) }, "EPERM", ""},
	"userfaultfd":   {"userfaultfd", func() error { return sysno(unix.SYS_USERFAULTFD, ^uintptr(0)) }, "EPERM", ""},
	"perf":          {"perf_event_open", func() error { return sysno(unix.SYS_PERF_EVENT_OPEN, 0) }, "EPERM", ""},
	"set the clock": {"clock_settime", func() error { return sysno(unix.SYS_CLOCK_SETTIME, ^uintptr(0), 0) }, "EPERM", ""},

	"no core":       {"prlimit64", noCore, "EFBIG", "ok"},
	"placed memory": {"set_mempolicy", func() error { return sysno(unix.SYS_SET_MEMPOLICY, 0, 0, 0) }, "EPERM", "ok"},
	"personality":   {"personality", func() error { return sysno(unix.SYS_PERSONALITY, 0x400000) }, "EPERM", "ok"},

	"other thread": {"setns", onOtherThread, "EPERM", "EBADF"},

	"tcp":       {"", func() error { return open(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) }, "ok", "ok"},
	"udp":       {"", func() error { return open(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP) }, "ok", "ok"},
	"unix":      {"", func() error { return open(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0) }, "ok", "ok"},
	"addresses": {"", func() error { _, err := net.InterfaceAddrs(); return err }, "ok", "ok"},
	"fork":      {"", func() error { return exec.Command("/bin/sh", "-c", "(true) | true").Run() }, "ok", "ok"},
	"listener":  {"", listen, "ok", "ok"},
	"minus one": {"", func() error { return sysno(^uintptr(0)) }, "ENOSYS", "ENOSYS"},
}

func probes() map[string]probe {
	all := maps.Clone(commonProbes)
	maps.Copy(all, archProbes)
	return all
}

// noCore lowers the limit of core files from 1 to 0, and reports EFBIG if it stands
// where it was.
func noCore() error {
	before := unix.Rlimit{Cur: 1, Max: 1}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &before); err != nil {
		return err
	}
	if before.Cur != 0 {
		return unix.EFBIG
	}
	return nil
}

func unshareUser() error { return unix.Unshare(unix.CLONE_NEWUSER) }

func cloneUser() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

// listen is what Go programs do first: multipath TCP, then plain.
func listen() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // one local bind
	if err != nil {
		return err
	}
	return ln.Close()
}

// onOtherThread calls from a thread that was there before the filter.
func onOtherThread() error {
	result := make(chan error)
	for range 8 { // more goroutines than idle threads: some are old ones
		go func() {
			runtime.LockOSThread()
			result <- unix.Setns(-1, unix.CLONE_NEWNET)
		}()
	}
	var last error
	for range 8 {
		if err := <-result; last == nil || err != unix.EPERM { //nolint:errorlint // a bare errno
			last = err
		}
	}
	return last
}

func observe(t *testing.T, name, filterName string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", asProbe, name, filterName)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector's pause, twice a probe
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == unix.SIGSYS {
			return killed
		}
	}
	if err != nil {
		t.Fatalf("%s with filter %s: %v\n%s", name, filterName, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestOnThisKernel(t *testing.T) {
	for name, p := range probes() {
		t.Run(name, func(t *testing.T) {
			if got := observe(t, name, "all"); got != p.want {
				t.Errorf("with the filter: %s, want %s", got, p.want)
			}
			without := p.rule
			if without == "" {
				without = "none"
			}
			got := observe(t, name, without)
			if p.bare != "" && got != p.bare {
				t.Errorf("without %s: %s, want %s", without, got, p.bare)
			}
			if p.bare == "" && got == p.want {
				t.Logf("without %s this machine says %s too", without, got)
			}
		})
	}
}

// The filter needs no_new_privs: without it an ordinary user may not load one.
func TestInstallNeedsNoNewPrivs(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may load filters as it is")
	}
	if err := Install(Options{}); !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
}
