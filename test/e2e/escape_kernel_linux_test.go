package e2e

import (
	"encoding/binary"
	"path/filepath"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// namespaces: changing the rules, or getting out from under them.
func namespaces() []escape {
	op := func(name, op string, port int, ctl control) escape {
		return escape{name: name, job: job.Job{Op: op, Port: port}, control: ctl}
	}
	return []escape{
		op("add an address", "netlink.addr", 0, asRoot),
		op("delete the route that captures", "netlink.route", 0, inside),
		op("add an interface", "netlink.link", 0, maybe),
		op("delete all nftables rules", "netlink.nft", 0, asRoot),
		op("unshare the user namespace's children: net", "unshare", unix.CLONE_NEWNET, asRoot),
		op("unshare mount", "unshare", unix.CLONE_NEWNS, asRoot),
		op("unshare ipc", "unshare", unix.CLONE_NEWIPC, asRoot),
		op("unshare uts", "unshare", unix.CLONE_NEWUTS, asRoot),
		op("unshare cgroup", "unshare", unix.CLONE_NEWCGROUP, asRoot),
		op("clone a user namespace", "clone", unix.CLONE_NEWUSER, maybe),
		op("clone user and net namespaces", "clone", unix.CLONE_NEWUSER|unix.CLONE_NEWNET, maybe),
		op("clone user and mount namespaces", "clone", unix.CLONE_NEWUSER|unix.CLONE_NEWNS, maybe),
		op("clone a pid namespace", "clone", unix.CLONE_NEWPID, asRoot),
		op("become root in a nested namespace and delete the rules", "nested", 0, inside),
		{name: "enter pid 1's network namespace", job: job.Job{Op: "setns.proc", Via: "/proc/1/ns/net"}, control: maybe},
		{name: "enter one's own network namespace", job: job.Job{Op: "setns.proc", Via: "/proc/self/ns/net"}, control: asRoot},
		{name: "enter pid 1's mount namespace", job: job.Job{Op: "setns.proc", Via: "/proc/1/ns/mnt"}, control: maybe},
		{name: "enter pid 1's user namespace", job: job.Job{Op: "setns.proc", Via: "/proc/1/ns/user"}, control: maybe},
		op("enter pid 1's namespaces by pidfd", "setns.pidfd", 0, maybe),
		op("mount a tmpfs", "mount.tmpfs", 0, asRoot),
		{name: "bind the host's /run", job: job.Job{Op: "mount.bind", Via: "/run/x"}, control: asRoot},
		op("mount proc", "mount.proc", 0, asRoot),
		{name: "unmount what covers /run", job: job.Job{Op: "mount.umount", Via: "/run"}, control: inside},
		{name: "unmount what covers /tmp", job: job.Job{Op: "mount.umount", Via: "/tmp"}, control: inside},
		{name: "unmount what covers /proc/sys", job: job.Job{Op: "mount.umount", Via: "/proc/sys"}, control: inside},
		op("fsopen", "mount.fsopen", 0, asRoot),
		op("chroot", "chroot", 0, asRoot),
		op("pivot_root", "pivot_root", 0, asRoot),
	}
}

// processes: other processes, and what of them can be reached.
func processes(c canaries) []escape {
	return []escape{
		{name: "trace pid 1", job: job.Job{Op: "ptrace"}, control: maybe},
		{name: "read pid 1's memory", job: job.Job{Op: "vm.read"}, control: maybe},
		{name: "take pid 1's descriptors", job: job.Job{Op: "pidfd.getfd"}, control: maybe},
		{name: "read pid 1's environment", job: job.Job{Op: "proc.read", Via: "/proc/1/environ", Token: c.secret}, control: inside},
		{name: "read pid 1's memory file", job: job.Job{Op: "open.write", Via: "/proc/1/mem"}, control: maybe},
		{name: "open pid 1's descriptors", job: job.Job{Op: "proc.read", Via: "/proc/1/fd/3"}, control: maybe},
		{name: "walk into pid 1's root", job: job.Job{Op: "proc.read", Via: "/proc/1/root/run"}, control: maybe},
		{name: "read pid 1's memory map", job: job.Job{Op: "proc.read", Via: "/proc/1/maps"}, control: maybe},
		{name: "read pid 1's kernel stack", job: job.Job{Op: "proc.read", Via: "/proc/1/stack"}, control: maybe},
		{name: "see processes outside", job: job.Job{Op: "proc.processes", Token: "-in-world"}},
		{name: "see the launcher's command line", job: job.Job{Op: "proc.processes", Token: "--dns-upstream"}, control: inside},
		{name: "signal a process outside", job: job.Job{Op: "kill.pid", Port: selfPid()}, control: maybe},
		{name: "trace a process outside", job: job.Job{Op: "ptrace", Port: selfPid()}, control: maybe},
		{name: "descriptors that launch inherited", job: job.Job{Op: "fds"}, control: inside},
		{name: "the launcher's secret in any environment", job: job.Job{Op: "env.secret", Token: c.secret}, control: inside},
		{name: "System V shared memory of outside", job: job.Job{Op: "ipc.shm", Port: c.shmKey}, control: maybe},
		{name: "a process left behind", job: job.Job{Op: "survivor", Via: addrPort("11.4.0.1", 8080)}, control: works, done: true},
		{name: "150 processes left behind", job: job.Job{Op: "fork.many", Port: 150}, control: works, done: true},
	}
}

// args spells up to six arguments for the raw system call.
func args(vals ...uint64) []byte {
	var b []byte
	for _, v := range vals {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

const buffer = ^uint64(0) // an argument that stands for the probe's own buffer

// systemCalls: what the kernel offers beyond files and sockets.
func systemCalls() []escape {
	call := func(name string, nr int, ctl control, a ...uint64) escape {
		return escape{name: name, job: job.Job{Op: "syscall", Port: nr, Raw: args(a...)}, control: ctl}
	}
	return append(portCalls(call), []escape{
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, maybe, 4, buffer),
		call("io_uring_enter", unix.SYS_IO_URING_ENTER, maybe, buffer),
		call("io_uring_register", unix.SYS_IO_URING_REGISTER, maybe, buffer),
		call("bpf", unix.SYS_BPF, maybe, 0, buffer, 72),
		call("userfaultfd", unix.SYS_USERFAULTFD, maybe, 1),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, maybe, buffer),
		call("add_key", unix.SYS_ADD_KEY, maybe, buffer, buffer, buffer, 1, 0xfffffffc),
		call("request_key", unix.SYS_REQUEST_KEY, maybe, buffer, buffer),
		call("keyctl: the session keyring", unix.SYS_KEYCTL, maybe, 0, 0xfffffffd, 1),
		call("keyctl: join a session", unix.SYS_KEYCTL, maybe, 1, 0),
		call("kexec_load", unix.SYS_KEXEC_LOAD, maybe, 0, 0, 0, 1<<32),
		call("init_module", unix.SYS_INIT_MODULE, maybe, buffer, 1, buffer),
		call("finit_module", unix.SYS_FINIT_MODULE, maybe, ^uint64(1)),
		call("delete_module", unix.SYS_DELETE_MODULE, maybe, buffer),
		call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, maybe, ^uint64(99), buffer),
		call("swapoff", unix.SYS_SWAPOFF, maybe, buffer),
		call("settimeofday", unix.SYS_SETTIMEOFDAY, maybe, 0, 0),
		call("quotactl", unix.SYS_QUOTACTL, maybe, 0x80000100, 0),
		call("acct", unix.SYS_ACCT, maybe, 1),
		call("lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, maybe, 0, buffer, 8),
		call("fanotify_init", unix.SYS_FANOTIFY_INIT, maybe, 4),
		call("name_to_handle_at and back", unix.SYS_OPEN_BY_HANDLE_AT, maybe, 0, buffer, 0),
		call("move_mount", unix.SYS_MOVE_MOUNT, maybe, ^uint64(99), buffer, ^uint64(99), buffer),
		call("open_tree with a clone", unix.SYS_OPEN_TREE, maybe, ^uint64(99), buffer, 1),
		{name: "a system call of the x32 ABI", job: job.Job{Op: "x32"}, control: maybe},
		{name: "a 32-bit system call", job: job.Job{Op: "i386"}, control: maybe},
		{name: "TIOCSTI", job: job.Job{Op: "tiocsti"}},
		{name: "TIOCSTI with high bits set", job: job.Job{Op: "tiocsti", QType: 1}},
		{name: "TIOCLINUX", job: job.Job{Op: "tiocsti", Port: unix.TIOCLINUX}},
	}...)
}

// filesAndDevices: files that a uid may write, whatever its capabilities.
func filesAndDevices(c canaries) []escape {
	var rows []escape
	add := func(name, op, via string, ctl control) {
		rows = append(rows, escape{name: name, job: job.Job{Op: op, Via: via}, control: ctl})
	}
	for _, f := range []string{"kernel/core_pattern", "kernel/modprobe", "kernel/hotplug", "vm/overcommit_memory", "net/ipv4/ip_forward", "kernel/yama/ptrace_scope", "fs/suid_dumpable"} {
		path := filepath.Join("/proc/sys", f)
		ctl := asRoot
		if !exists(path) {
			ctl = maybe
		}
		add("write "+path, "open.write", path, ctl)
	}
	add("write /proc/sysrq-trigger", "open.write", "/proc/sysrq-trigger", maybe)
	add("write /sys/kernel/uevent_helper", "open.write", "/sys/kernel/uevent_helper", maybe)
	add("write /dev/mem", "open.write", "/dev/mem", maybe)
	add("write /dev/kmsg", "open.write", "/dev/kmsg", maybe)
	add("read /dev/vda", "proc.read", "/dev/vda", maybe)
	add("make a disk node", "mknod", "", maybe)
	rows = append(rows,
		escape{name: "write the policy file", job: job.Job{Op: "write", Via: c.policy, Token: "allow: ['*']"}, control: inside},
		escape{name: "rename the policy file", job: job.Job{Op: "rename", Via: c.policy}},
		escape{name: "remove the policy file", job: job.Job{Op: "remove", Via: c.policy}, control: inside},
		escape{name: "write the event file", job: job.Job{Op: "write", Via: "events.jsonl", Token: "forged"}, control: inside},
		escape{name: "rename the event file", job: job.Job{Op: "rename", Via: "events.jsonl"}, control: inside},
		escape{name: "remove the event file", job: job.Job{Op: "remove", Via: "events.jsonl"}, control: inside},
	)
	return rows
}
