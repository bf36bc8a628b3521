package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func notExempt(_ context.Context, c Config) Result {
	for _, id := range []int{os.Getuid(), os.Geteuid()} {
		if uint32(id) == c.UID {
			return leak(fmt.Sprintf("uid %d is egressd's own, which may do everything", id), advisePlain)
		}
	}
	return pass(fmt.Sprintf("uid %d", os.Getuid()))
}

// dangerous are the capabilities with which a program changes the rules, goes
// around them, or takes egressd's place.
var dangerous = []struct {
	bit  uint
	name string
}{
	{unix.CAP_NET_ADMIN, "NET_ADMIN"},
	{unix.CAP_NET_RAW, "NET_RAW"},
	{unix.CAP_SYS_ADMIN, "SYS_ADMIN"},
	{unix.CAP_SETUID, "SETUID"},
	{unix.CAP_SYS_PTRACE, "SYS_PTRACE"},
	{unix.CAP_SYS_MODULE, "SYS_MODULE"},
	{unix.CAP_BPF, "BPF"},
	{unix.CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
	{unix.CAP_SYS_RAWIO, "SYS_RAWIO"},
}

func noCapabilities(context.Context, Config) Result {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return leak(err.Error(), "")
	}
	var held []string
	for _, d := range dangerous {
		if data[d.bit/32].Permitted&(1<<(d.bit%32)) != 0 {
			held = append(held, d.name)
		}
	}
	if len(held) > 0 {
		return leak("holds "+strings.Join(held, ", "), advisePlain)
	}
	return pass("none")
}

// becomeExempt tries it on a thread of its own, which ends when it succeeded.
func becomeExempt(_ context.Context, c Config) Result {
	done := make(chan Result, 1)
	go func() {
		runtime.LockOSThread()
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(c.UID), uintptr(c.UID), uintptr(c.UID))
		if errno == 0 {
			done <- leak("it is possible", advisePlain)
			return // still locked: the thread ends here
		}
		runtime.UnlockOSThread()
		done <- pass(errno.Error())
	}()
	return <-done
}

// touchRules asks for the generation of the rules, which takes what changing
// them takes, and changes nothing.
func touchRules(context.Context, Config) Result {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return pass(err.Error())
	}
	defer unix.Close(fd)
	// struct nlmsghdr and struct nfgenmsg of NFT_MSG_GETGEN.
	message := []byte{20, 0, 0, 0, unix.NFT_MSG_GETGEN, unix.NFNL_SUBSYS_NFTABLES, unix.NLM_F_REQUEST | unix.NLM_F_ACK, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if bigEndian() {
		message = []byte{0, 0, 0, 20, unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_GETGEN, 0, unix.NLM_F_REQUEST | unix.NLM_F_ACK, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	}
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return pass(err.Error())
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return pass(err.Error())
	}
	if errno := refusal(answer[:n]); errno != 0 {
		return pass(errno.Error())
	}
	return leak("the kernel answers", advisePlain)
}

func markPackets(context.Context, Config) Result {
	return mustFail(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1)
	}, advisePlain)
}

func rawSocket(context.Context, Config) Result {
	return mustFail(func() error { return openAndClose(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }, advisePlain)
}

func packetSocket(context.Context, Config) Result {
	return mustFail(func() error { return openAndClose(unix.AF_PACKET, unix.SOCK_RAW, 0) }, advisePlain)
}

func openAndClose(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// mustFail passes when fn reports an error.
func mustFail(fn func() error, advice string) Result {
	if err := fn(); err != nil {
		return pass(err.Error())
	}
	return leak("it is possible", advice)
}

// vsock tries the way from a virtual machine to its host, which no network
// namespace holds.
func vsock(context.Context, Config) Result {
	const advice = "use a seccomp profile that refuses AF_VSOCK: Docker's and newer containerd's do, Podman's and containerd 1.6's do not (--security-opt seccomp=deploy/seccomp/agent.json)"
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return pass(err.Error())
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(1e9)
	_ = unix.SetsockoptTimeval(fd, unix.AF_VSOCK, unix.SO_VM_SOCKETS_CONNECT_TIMEOUT_NEW, &tv)
	const unused = 4095
	err = unix.Connect(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_HOST, Port: unused})
	for _, absent := range []error{unix.ENODEV, unix.EPERM, unix.EACCES, unix.ENETUNREACH, unix.EADDRNOTAVAIL} {
		if errors.Is(err, absent) {
			return pass(err.Error())
		}
	}
	if err == nil {
		return leak("the host answers", advice)
	}
	return leak("the host is asked: "+err.Error(), advice)
}
