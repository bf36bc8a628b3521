package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// machine reads the files of the kernel below root.
type machine struct {
	root string
}

// Probe tries what launch needs, in processes of its own that end with ctx.
// It changes nothing on the machine.
func Probe(ctx context.Context, o Options) []Finding {
	m := machine{root: "/"}
	in, err := attempt(ctx, o.Inside)
	findings := []Finding{m.release(), m.userNamespaces(err, o.Binary)}
	if in != nil {
		findings = append(findings, m.procfs(in.Proc), capture(*in))
		if in.Error == "" {
			findings = append(findings, refusals(*in), ipv6(*in), dummy(*in))
		}
	}
	findings = append(findings, seccompFilter(), landlock(), m.tracing())
	if f, ok := m.container(); ok {
		findings = append(findings, f)
	}
	return findings
}

// read reports the trimmed content of a file, or "" if it cannot be read.
func (m machine) read(path string) string {
	b, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (m machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(m.root, path))
	return err == nil
}

// release reports the kernel, and whether Windows runs it.
func (m machine) release() Finding {
	version := m.read("proc/sys/kernel/osrelease")
	f := Finding{Name: "kernel", OK: true, Needed: true, Detail: "Linux " + version}
	switch lower := strings.ToLower(version); {
	case !strings.Contains(lower, "microsoft"):
	case strings.Contains(lower, "wsl2"):
		f.Detail += ", under WSL 2"
	default:
		f.OK = false
		f.Detail += ": WSL 1 translates Linux calls and has no namespaces"
		f.Fix = "wsl.exe --set-version Ubuntu 2   # in Windows, with the name that wsl.exe --list shows"
	}
	return f
}

// procfs explains why a fresh /proc is refused: the kernel allows one in a user
// namespace only if no part of the visible one is covered.
func (m machine) procfs(refused string) Finding {
	f := Finding{Name: "fresh /proc", OK: refused == "", Needed: true, Detail: "can be mounted in a new namespace"}
	if f.OK {
		return f
	}
	f.Detail = "can't be mounted in a new namespace (" + refused + ")"
	covered := m.covered()
	if len(covered) == 0 {
		return f
	}
	f.Detail += ": parts of /proc are covered here (" + strings.Join(covered, ", ") + "), as container engines do"
	f.Fix = "docker run --security-opt systempaths=unconfined …\n" +
		"podman run --security-opt unmask=ALL …\n" +
		"in Kubernetes: securityContext.procMount: Unmasked, with hostUsers: false"
	return f
}

// covered lists the mount points below /proc (mountinfo, proc(5)).
func (m machine) covered() []string {
	const most = 4
	var found []string
	for line := range strings.Lines(m.read("proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(fields[4], "/proc/") {
			continue
		}
		if strings.HasPrefix(fields[4], "/proc/sys/fs/binfmt_misc") {
			continue // on an empty directory made for it: does not count as covering
		}
		if len(found) == most {
			return append(found, "…")
		}
		found = append(found, fields[4])
	}
	return found
}

// container reports the engine that runs this process, if any.
func (m machine) container() (Finding, bool) {
	cgroup := m.read("proc/1/cgroup")
	engine := ""
	switch {
	case m.exists("run/.containerenv"):
		engine = "podman"
	case m.exists("var/run/secrets/kubernetes.io"), strings.Contains(cgroup, "kubepods"):
		engine = "Kubernetes"
	case m.exists(".dockerenv"), strings.Contains(cgroup, "docker"):
		engine = "Docker"
	case strings.Contains(cgroup, "lxc"):
		engine = "LXC"
	default:
		return Finding{}, false
	}
	return Finding{
		Name: "container", OK: true,
		Detail: "runs inside " + engine + ": what the engine forbids is forbidden to launch as well",
	}, true
}

// seccompFilter asks for the action that the filter needs (Linux 4.14).
func seccompFilter() Finding {
	f := Finding{Name: "system-call filter", Needed: true}
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if f.OK = e == 0; f.OK {
		f.Detail = "seccomp filters are available"
		return f
	}
	f.Detail = fmt.Sprintf("seccomp filters are not available (%v): this needs a kernel with CONFIG_SECCOMP_FILTER", e)
	return f
}

// tracing reports whether Yama lets a process look into its own children, as pid 1
// does to make the program's connections. A real run tries it.
func (m machine) tracing() Finding {
	f := Finding{Name: "connections", OK: true, Detail: "pid 1 may make them for the program"}
	switch scope := m.read("proc/sys/kernel/yama/ptrace_scope"); scope {
	case "2":
		f.OK, f.Fix = false, "sudo sysctl -w kernel.yama.ptrace_scope=1"
	case "3":
		f.OK, f.Fix = false, "set kernel.yama.ptrace_scope = 1 in /etc/sysctl.d and start the machine anew: 3 cannot be taken back"
	}
	if !f.OK {
		f.Detail = "Yama forbids all tracing (kernel.yama.ptrace_scope is 2 or 3), so pid 1 cannot make them for the program, and no program is started; kernels with Landlock ABI 9 do not need it"
	}
	return f
}

// landlock asks for the ABI version, landlock(7).
func landlock() Finding {
	f := Finding{Name: "Landlock"}
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if f.OK = e == 0; f.OK {
		f.Detail = fmt.Sprintf("ABI %d", abi)
		return f
	}
	f.Detail = "not enabled: one layer fewer around files and sockets; the network gate does not depend on it"
	f.Fix = "add landlock to the lsm= list on the kernel's command line (see /sys/kernel/security/lsm)"
	return f
}
