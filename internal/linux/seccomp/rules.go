//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// rule says what one system call returns.
type rule struct {
	name   string
	number uint32
	body   block  // ends in a return on every path
	why    string // what the call would allow otherwise
}

func errno(e unix.Errno) uint32 { return retErrno | uint32(e) }

func refuse(e unix.Errno) block { return block{ret(errno(e))} }

// rules are those of the filter that o chooses.
func (o Options) rules() []rule {
	if o.Nested {
		return baseRules()
	}
	return append(baseRules(), namespaceRules()...)
}

func baseRules() []rule {
	eperm, enosys := refuse(unix.EPERM), refuse(unix.ENOSYS)
	common := []rule{
		{"socket", unix.SYS_SOCKET, socketRule(), "vsock reaches the hypervisor, packet and raw sockets and other families are not captured by the rules"},
		{"socketpair", unix.SYS_SOCKETPAIR, socketpairRule(), "other families than unix are not captured by the rules"},
		{"ioctl", unix.SYS_IOCTL, ioctlRule(), "typing into the terminal of the shell outside"},

		{"io_uring_setup", unix.SYS_IO_URING_SETUP, enosys, "makes sockets without the socket call, unseen by this filter; programs fall back as on an old kernel"},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, enosys, "as io_uring_setup"},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, enosys, "as io_uring_setup"},

		{"clone3", unix.SYS_CLONE3, enosys, "its flags are in memory, which no filter can read; every libc falls back to clone"},
		{"setns", unix.SYS_SETNS, eperm, "enters another namespace through a descriptor"},

		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, eperm, "opens files by number, past every mount that hides them"},
		{"quotactl", unix.SYS_QUOTACTL, eperm, "administers the host's file systems"},
		{"quotactl_fd", unix.SYS_QUOTACTL_FD, eperm, "as quotactl"},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, eperm, "watches files of the host; no sandboxed program needs it"},

		{"keyctl", unix.SYS_KEYCTL, eperm, "reads the keys of the user outside"},
		{"add_key", unix.SYS_ADD_KEY, eperm, "as keyctl"},
		{"request_key", unix.SYS_REQUEST_KEY, eperm, "asks a helper outside, which may resolve names (dns_resolver keys): a way out"},

		{"bpf", unix.SYS_BPF, eperm, "kernel surface; no sandboxed program needs it"},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, eperm, "watches the whole machine where the host's settings are lax"},
		{"userfaultfd", unix.SYS_USERFAULTFD, eperm, "holds the kernel still inside a copy: the usual tool of kernel exploits"},

		{"init_module", unix.SYS_INIT_MODULE, eperm, "the machine's kernel"},
		{"finit_module", unix.SYS_FINIT_MODULE, eperm, "as init_module"},
		{"delete_module", unix.SYS_DELETE_MODULE, eperm, "as init_module"},
		{"kexec_load", unix.SYS_KEXEC_LOAD, eperm, "as init_module"},
		{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, eperm, "as init_module"},
		{"reboot", unix.SYS_REBOOT, eperm, "the machine"},
		{"swapon", unix.SYS_SWAPON, eperm, "the machine"},
		{"swapoff", unix.SYS_SWAPOFF, eperm, "the machine"},
		{"acct", unix.SYS_ACCT, eperm, "makes the kernel write a file outside"},
		{"syslog", unix.SYS_SYSLOG, eperm, "reads the machine's log"},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, eperm, "the machine's clock"},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, eperm, "the machine's clock"},
	}
	return slices.Concat(common, memoryRules(), boundRules(), archRules())
}

// memoryRules refuse old and rare kernel surface that no ordinary program depends on:
// the same calls that container engines refuse. What places memory on processors
// (numactl, a JVM with UseNUMA, databases) is told no, and goes on without.
func memoryRules() []rule {
	eperm := refuse(unix.EPERM)
	return []rule{
		{"kcmp", unix.SYS_KCMP, eperm, "compares kernel pointers: helps exploits to find their way"},
		{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, eperm, "profiles the whole machine"},
		{"mbind", unix.SYS_MBIND, eperm, "kernel surface; programs fall back to the default placement"},
		{"set_mempolicy", unix.SYS_SET_MEMPOLICY, eperm, "as mbind"},
		{"set_mempolicy_home_node", unix.SYS_SET_MEMPOLICY_HOME_NODE, eperm, "as mbind"},
		{"move_pages", unix.SYS_MOVE_PAGES, eperm, "as mbind"},
		{"migrate_pages", unix.SYS_MIGRATE_PAGES, eperm, "as mbind"},
		{"personality", unix.SYS_PERSONALITY, personalityRule(), "old ways of laying out and starting programs, which weaken what protects them"},
	}
}

// Personalities, linux/personality.h.
const (
	perLinux32    = 0x8
	perUname26    = 0x20000
	perNoRandom   = 0x40000    // ADDR_NO_RANDOMIZE
	perAskCurrent = 0xffffffff // changes nothing
)

// personalityRule allows what container engines allow, and what debuggers and
// sanitizers do to the programs they start: fixed addresses weaken nobody else.
func personalityRule() block {
	return join(
		block{loadArg(0)},
		oneOf(errno(unix.EPERM), 0, perLinux32, perUname26, perUname26|perLinux32, perNoRandom, perAskCurrent),
		block{ret(retAllow)},
	)
}

// boundRules keep RLIMIT_CORE where the init has set it.
//
// Threat: a program inside crashes and the kernel starts the core_pattern helper of
// the machine, as root and outside, with a core that the program made -> the limit
// is 1, at which the kernel starts no helper (fs/coredump.c). A limit of 0 would
// start it, and lowering a limit cannot be forbidden otherwise: setting it is
// answered with success and does nothing, which is what programs that do not want
// cores (ssh-agent, gpg-agent) get anyway. Asking for the old limit in the same call
// is refused, as there would be no answer.
func boundRules() []rule {
	const resource, set, old = 1, 2, 3
	done := errno(0)
	change := append(unlessNil(old, ret(errno(unix.EPERM))), ret(done))
	return []rule{
		{"prlimit64", unix.SYS_PRLIMIT64, join(
			block{loadArg(resource)},
			when(bpf.JumpNotEqual, unix.RLIMIT_CORE, ret(retAllow)),
			unlessNil(set, change...),
			block{ret(retAllow)},
		), "a crash would start a helper of the machine, as root"},
		{"setrlimit", unix.SYS_SETRLIMIT, join(
			block{loadArg(0)},
			when(bpf.JumpEqual, unix.RLIMIT_CORE, ret(done)),
			block{ret(retAllow)},
		), "as prlimit64"},
	}
}

// namespaceRules keep programs from making namespaces and mounts. They are a
// second layer: a nested user namespace has no capability over the namespaces
// that hold the rules and the mounts, and what is covered stays covered in it.
func namespaceRules() []rule {
	eperm := refuse(unix.EPERM)
	return []rule{
		{"clone", unix.SYS_CLONE, cloneRule(), "a new user namespace gives capabilities over new namespaces"},
		{"unshare", unix.SYS_UNSHARE, unshareRule(), "as clone"},
		{"mount", unix.SYS_MOUNT, eperm, "uncovers or covers what the sandbox hid"},
		{"umount2", unix.SYS_UMOUNT2, eperm, "uncovers what the sandbox hid"},
		{"pivot_root", unix.SYS_PIVOT_ROOT, eperm, "as mount"},
		{"chroot", unix.SYS_CHROOT, eperm, "as mount"},
		{"fsopen", unix.SYS_FSOPEN, eperm, "as mount"},
		{"fsconfig", unix.SYS_FSCONFIG, eperm, "as mount"},
		{"fsmount", unix.SYS_FSMOUNT, eperm, "as mount"},
		{"fspick", unix.SYS_FSPICK, eperm, "as mount"},
		{"open_tree", unix.SYS_OPEN_TREE, eperm, "as mount"},
		{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, eperm, "as mount"},
		{"move_mount", unix.SYS_MOVE_MOUNT, eperm, "as mount"},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, eperm, "as mount"},
	}
}

// Address families and protocols as in sys/socket.h and netinet/in.h.
const socketTypeMask = 0xf // the rest are SOCK_CLOEXEC and SOCK_NONBLOCK

// socketRule allows unix sockets, TCP and UDP, and netlink's routing protocol
// (getifaddrs needs it). Multipath TCP and SCTP are answered as by a kernel
// without them, so that programs fall back to TCP.
func socketRule() block {
	const family, kind, protocol = 0, 1, 2
	inet := join(
		block{loadArg(kind), and(socketTypeMask)},
		when(bpf.JumpEqual, unix.SOCK_STREAM, join(
			block{loadArg(protocol)},
			oneOf(errno(unix.EPROTONOSUPPORT), 0, unix.IPPROTO_TCP),
			block{ret(retAllow)},
		)...),
		when(bpf.JumpEqual, unix.SOCK_DGRAM, join(
			block{loadArg(protocol)},
			oneOf(errno(unix.EPROTONOSUPPORT), 0, unix.IPPROTO_UDP),
			block{ret(retAllow)},
		)...),
		when(bpf.JumpEqual, unix.SOCK_RAW, ret(errno(unix.EPERM))),
		when(bpf.JumpEqual, unix.SOCK_PACKET, ret(errno(unix.EPERM))),
		block{ret(errno(unix.EPROTONOSUPPORT))},
	)
	netlink := join(
		block{loadArg(protocol)},
		oneOf(errno(unix.EPROTONOSUPPORT), unix.NETLINK_ROUTE),
		block{ret(retAllow)},
	)
	return join(
		block{loadArg(family)},
		when(bpf.JumpEqual, unix.AF_UNIX, ret(retAllow)),
		when(bpf.JumpEqual, unix.AF_NETLINK, netlink...),
		oneOf(errno(unix.EAFNOSUPPORT), unix.AF_INET, unix.AF_INET6),
		inet,
	)
}

// socketpairRule allows unix sockets alone: no other family here has pairs.
func socketpairRule() block {
	return join(block{loadArg(0)}, oneOf(errno(unix.EAFNOSUPPORT), unix.AF_UNIX), block{ret(retAllow)})
}

// Flags that make a namespace, linux/sched.h. CLONE_NEWTIME shares its bit
// with the exit signal of clone, which therefore can't mean it.
const (
	newNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	shareAllowed = unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SYSVSEM | unix.CLONE_VM |
		unix.CLONE_SIGHAND | unix.CLONE_THREAD
)

func cloneRule() block {
	return join(
		block{loadArg(0)},
		when(bpf.JumpBitsSet, newNamespace, ret(errno(unix.EPERM))),
		block{ret(retAllow)},
	)
}

// unshareRule allows the flags it knows to be harmless, so that a namespace of
// a later kernel is refused too.
func unshareRule() block {
	return join(
		block{loadArg(0)},
		when(bpf.JumpBitsSet, ^uint32(shareAllowed), ret(errno(unix.EPERM))),
		block{ret(retAllow)},
	)
}

// ioctlRule refuses by request. Threat: a program inside puts characters into
// the input of the terminal it shares with the shell that started launch,
// which runs them outside -> TIOCSTI and TIOCLINUX (paste) are refused.
// TIOCSETD loads line disciplines, old kernel code that no program here needs.
func ioctlRule() block {
	return join(
		block{loadArg(1)},
		when(bpf.JumpEqual, unix.TIOCSTI, ret(errno(unix.EPERM))),
		when(bpf.JumpEqual, tiocLinux, ret(errno(unix.EPERM))),
		when(bpf.JumpEqual, unix.TIOCSETD, ret(errno(unix.EPERM))),
		block{ret(retAllow)},
	)
}

const tiocLinux = 0x541c // TIOCLINUX, asm-generic/ioctls.h
