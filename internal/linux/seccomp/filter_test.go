//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call is one struct seccomp_data.
type call struct {
	arch uint32
	nr   uint32
	args [6]uint64
}

func native(nr uint32, args ...uint64) call {
	c := call{arch: nativeArch, nr: nr}
	copy(c.args[:], args)
	return c
}

// bytes lays c out for bpf.VM, which reads big-endian words where the kernel
// reads native ones: each word is stored the other way round, in its place.
func (c call) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, c.nr)
	b = binary.BigEndian.AppendUint32(b, c.arch)
	b = append(b, make([]byte, 8)...) // instruction pointer
	for _, a := range c.args {
		b = binary.BigEndian.AppendUint32(b, uint32(a))
		b = binary.BigEndian.AppendUint32(b, uint32(a>>32))
	}
	return b
}

func judge(t *testing.T, f block, c call) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(f)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vm.Run(c.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return uint32(v)
}

const high = 0xdead_0000_0000_0000 // upper halves that the kernel ignores

type verdict struct {
	name string
	call call
	want uint32
}

// refused holds one call or more that each rule refuses, by rule.
func refused() map[string][]verdict {
	e := errno
	socket := func(family, kind, proto uint64) call { return native(unix.SYS_SOCKET, family, kind, proto) }
	m := map[string][]verdict{
		"socket": {
			{"vsock", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), e(unix.EAFNOSUPPORT)},
			{"packet", socket(unix.AF_PACKET, unix.SOCK_RAW, 0x300), e(unix.EAFNOSUPPORT)},
			{"bluetooth", socket(unix.AF_BLUETOOTH, unix.SOCK_STREAM, 3), e(unix.EAFNOSUPPORT)},
			{"alg", socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), e(unix.EAFNOSUPPORT)},
			{"xdp", socket(unix.AF_XDP, unix.SOCK_RAW, 0), e(unix.EAFNOSUPPORT)},
			{"unspec", socket(0, unix.SOCK_STREAM, 0), e(unix.EAFNOSUPPORT)},
			{"packet in the upper half", socket(high|unix.AF_PACKET, unix.SOCK_RAW, 0), e(unix.EAFNOSUPPORT)},
			{"raw icmp", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), e(unix.EPERM)},
			{"raw with flags", socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 255), e(unix.EPERM)},
			{"raw, upper half", socket(high|unix.AF_INET, high|unix.SOCK_RAW, high|1), e(unix.EPERM)},
			{"sock_packet", socket(unix.AF_INET, unix.SOCK_PACKET, 0x300), e(unix.EPERM)},
			{"ping", socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), e(unix.EPROTONOSUPPORT)},
			{"ping 6", socket(unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6), e(unix.EPROTONOSUPPORT)},
			{"udp-lite", socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), e(unix.EPROTONOSUPPORT)},
			{"mptcp", socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), e(unix.EPROTONOSUPPORT)},
			{"sctp stream", socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), e(unix.EPROTONOSUPPORT)},
			{"sctp seqpacket", socket(unix.AF_INET6, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP), e(unix.EPROTONOSUPPORT)},
			{"dccp", socket(unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP), e(unix.EPROTONOSUPPORT)},
			{"tcp over a dgram", socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_TCP), e(unix.EPROTONOSUPPORT)},
			{"netfilter", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), e(unix.EPROTONOSUPPORT)},
			{"audit", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT), e(unix.EPROTONOSUPPORT)},
		},
		"socketpair": {
			{"tipc", native(unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM), e(unix.EAFNOSUPPORT)},
			{"inet", native(unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM), e(unix.EAFNOSUPPORT)},
		},
		"ioctl": {
			{"TIOCSTI", native(unix.SYS_IOCTL, 0, unix.TIOCSTI), e(unix.EPERM)},
			{"TIOCSTI, upper half", native(unix.SYS_IOCTL, 0, high|unix.TIOCSTI), e(unix.EPERM)},
			{"TIOCLINUX", native(unix.SYS_IOCTL, 0, tiocLinux), e(unix.EPERM)},
			{"TIOCSETD", native(unix.SYS_IOCTL, 0, unix.TIOCSETD), e(unix.EPERM)},
		},
	}
	m["personality"] = []verdict{
		{"read implies exec", native(unix.SYS_PERSONALITY, 0x400000), e(unix.EPERM)},
		{"System V", native(unix.SYS_PERSONALITY, 1), e(unix.EPERM)},
		{"mmap at zero", native(unix.SYS_PERSONALITY, high|0x100000), e(unix.EPERM)},
	}
	m["prlimit64"] = []verdict{
		{"cores", native(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0x7ffc0000), e(0)},
		{"cores, upper halves", native(unix.SYS_PRLIMIT64, high, high|unix.RLIMIT_CORE, 1<<40), e(0)},
		{"cores, and the old limit", native(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 1<<40, 1<<41), e(unix.EPERM)},
		{"cores of another", native(unix.SYS_PRLIMIT64, 77, unix.RLIMIT_CORE, 8), e(0)},
	}
	m["setrlimit"] = []verdict{{"cores", native(unix.SYS_SETRLIMIT, high|unix.RLIMIT_CORE, 8), e(0)}}
	for _, flag := range []uint64{
		unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC,
		unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET,
	} {
		name := fmt.Sprintf("flag %#x", flag)
		m["clone"] = append(m["clone"],
			verdict{name, native(unix.SYS_CLONE, flag|uint64(unix.SIGCHLD)), e(unix.EPERM)},
			verdict{name + ", upper half", native(unix.SYS_CLONE, high|flag), e(unix.EPERM)})
		m["unshare"] = append(m["unshare"], verdict{name, native(unix.SYS_UNSHARE, flag|unix.CLONE_FS), e(unix.EPERM)})
	}
	m["unshare"] = append(m["unshare"],
		verdict{"time namespace", native(unix.SYS_UNSHARE, unix.CLONE_NEWTIME), e(unix.EPERM)},
		verdict{"a flag nobody knows yet", native(unix.SYS_UNSHARE, 1<<20), e(unix.EPERM)})
	return m
}

func TestRefused(t *testing.T) {
	all := Options{}.rules()
	f := filter(all)
	cases := refused()
	for i, r := range all {
		probes, ok := cases[r.name]
		if !ok { // refused whatever the arguments: the body is one return
			probes = []verdict{{"plain", native(r.number), r.body[0].(bpf.RetConstant).Val}}
		}
		without := filter(slices.Delete(slices.Clone(all), i, i+1))
		for _, p := range probes {
			if got := judge(t, f, p.call); got != p.want {
				t.Errorf("%s %s: got %#x, want %#x", r.name, p.name, got, p.want)
			}
			if got := judge(t, without, p.call); got != retAllow {
				t.Errorf("%s %s: without its rule: got %#x, want it allowed", r.name, p.name, got)
			}
		}
		if r.why == "" {
			t.Errorf("%s is refused without a reason", r.name)
		}
		delete(cases, r.name)
	}
	for name := range cases {
		t.Errorf("cases for %s, which has no rule", name)
	}
}

func TestAllowed(t *testing.T) {
	f := filter(Options{}.rules())
	for _, c := range []verdict{
		{name: "read", call: native(unix.SYS_READ)},
		{name: "execve", call: native(unix.SYS_EXECVE)},
		{name: "ptrace", call: native(unix.SYS_PTRACE)},
		{name: "seccomp", call: native(unix.SYS_SECCOMP)},
		{name: "landlock", call: native(unix.SYS_LANDLOCK_CREATE_RULESET)},
		{name: "memfd", call: native(unix.SYS_MEMFD_CREATE)},
		{name: "the number -1", call: native(0xffffffff)},
		{name: "fork", call: native(unix.SYS_CLONE, uint64(unix.SIGCHLD))},
		{name: "thread", call: native(unix.SYS_CLONE, 0x3d0f00)},
		{name: "vfork with pidfd (Go)", call: native(unix.SYS_CLONE, unix.CLONE_VFORK|unix.CLONE_VM|unix.CLONE_PIDFD|uint64(unix.SIGCHLD))},
		{name: "unshare files", call: native(unix.SYS_UNSHARE, unix.CLONE_FILES|unix.CLONE_FS)},
		{name: "unix", call: native(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)},
		{name: "unix seqpacket", call: native(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET)},
		{name: "tcp", call: native(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)},
		{name: "tcp by number", call: native(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)},
		{name: "tcp 6", call: native(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)},
		{name: "udp", call: native(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)},
		{name: "udp 6", call: native(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP)},
		{name: "rtnetlink", call: native(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)},
		{name: "socketpair", call: native(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM)},
		{name: "fixed addresses (gdb)", call: native(unix.SYS_PERSONALITY, perNoRandom)},
		{name: "which personality", call: native(unix.SYS_PERSONALITY, 0xffffffff)},
		{name: "how much core", call: native(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, 0, 0x7ffc0000)},
		{name: "fewer files", call: native(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NOFILE, 0x7ffc0000)},
		{name: "fewer files, old call", call: native(unix.SYS_SETRLIMIT, unix.RLIMIT_NOFILE, 0x7ffc0000)},
		{name: "memory policy in force", call: native(unix.SYS_GET_MEMPOLICY)},
		{name: "window size", call: native(unix.SYS_IOCTL, 0, unix.TIOCGWINSZ)},
		{name: "foreground group", call: native(unix.SYS_IOCTL, 0, unix.TIOCSPGRP)},
	} {
		if got := judge(t, f, c.call); got != retAllow {
			t.Errorf("%s: got %#x, want it allowed", c.name, got)
		}
	}
}

// The same number means another call elsewhere: no foreign call may pass.
func TestForeignArchitecture(t *testing.T) {
	f := filter(Options{}.rules())
	for _, arch := range []uint32{
		0, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64,
		nativeArch ^ 0x80000000, nativeArch ^ 0x40000000,
	} {
		for _, nr := range []uint32{unix.SYS_READ, unix.SYS_SOCKET, 0xffffffff} {
			if got := judge(t, f, call{arch: arch, nr: nr}); got != retKill {
				t.Errorf("arch %#x call %d: got %#x, want death", arch, nr, got)
			}
		}
	}
}

// Jumps are 8 bits and programs 4096 instructions (BPF_MAXINSNS).
func TestJumpsFit(t *testing.T) {
	for _, r := range (Options{}).rules() {
		if len(r.body) > 255 {
			t.Errorf("%s: body of %d instructions", r.name, len(r.body))
		}
		if _, ok := r.body[len(r.body)-1].(bpf.RetConstant); !ok {
			t.Errorf("%s: falls through into the next rule", r.name)
		}
	}
	if n := len(filter((Options{}).rules())); n > 4096 {
		t.Errorf("%d instructions", n)
	}
}

// TestNested lets go of the namespace rules and of nothing else.
func TestNested(t *testing.T) {
	nested := Options{Nested: true}.rules()
	for _, r := range (Options{}).rules() {
		kept := slices.ContainsFunc(nested, func(n rule) bool { return n.name == r.name })
		dropped := slices.ContainsFunc(namespaceRules(), func(n rule) bool { return n.name == r.name })
		if kept == dropped {
			t.Errorf("%s: kept %v, a namespace rule %v", r.name, kept, dropped)
		}
	}
	f := filter(nested)
	for _, n := range []uint32{unix.SYS_UNSHARE, unix.SYS_CLONE} {
		if got := judge(t, f, native(n, unix.CLONE_NEWUSER|unix.CLONE_NEWNET)); got != retAllow {
			t.Errorf("call %d making namespaces: %#x, want it allowed", n, got)
		}
	}
	if got := judge(t, f, native(unix.SYS_SETNS, 0, 0)); got == retAllow {
		t.Error("setns passes: nobody nested needs it")
	}
}
