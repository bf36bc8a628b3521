package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// netlinkOpen opens the netlink protocol in Port.
func netlinkOpen(j job.Job) job.Result {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, j.Port)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	return outcome(unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}), "open")
}

// netlinkAsk sends one message and reports the kernel's verdict.
func netlinkAsk(proto int, typ, flags uint16, body []byte) job.Result {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(stepTimeout.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	msg := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	msg = binary.NativeEndian.AppendUint16(msg, typ)
	msg = binary.NativeEndian.AppendUint16(msg, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	msg = append(binary.NativeEndian.AppendUint32(msg, 1), 0, 0, 0, 0)
	msg = append(msg, body...)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fail(fmt.Errorf("send: %w", err))
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return fail(fmt.Errorf("receive: %w", err))
	}
	if n >= 20 && binary.NativeEndian.Uint16(buf[4:]) == unix.NLMSG_ERROR {
		if e := int32(binary.NativeEndian.Uint32(buf[16:])); e != 0 {
			return fail(syscall.Errno(-e))
		}
	}
	return done("acknowledged")
}

// netlinkAddAddr gives lo one more address (harmless, but proof of NET_ADMIN).
func netlinkAddAddr(job.Job) job.Result {
	body := []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0}
	for _, attr := range []uint16{unix.IFA_LOCAL, unix.IFA_ADDRESS} {
		body = binary.NativeEndian.AppendUint16(body, 8)
		body = binary.NativeEndian.AppendUint16(body, attr)
		body = append(body, 127, 77, 77, 77)
	}
	return netlinkAsk(unix.NETLINK_ROUTE, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, body)
}

// netlinkDelRoute removes the local default route that captures everything.
func netlinkDelRoute(job.Job) job.Result {
	body := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, 0, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0}
	return netlinkAsk(unix.NETLINK_ROUTE, unix.RTM_DELROUTE, 0, body)
}

// netlinkAddLink makes a dummy interface.
func netlinkAddLink(job.Job) job.Result {
	body := make([]byte, 16)
	body = append(body, attr(unix.IFLA_IFNAME, []byte("probe0\x00"))...)
	body = append(body, attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, []byte("dummy")))...)
	return netlinkAsk(unix.NETLINK_ROUTE, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, body)
}

func attr(typ uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = append(binary.NativeEndian.AppendUint16(b, typ), data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// netlinkFlushRules deletes every nftables table, in one batch.
func netlinkFlushRules(job.Job) job.Result {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return fail(fmt.Errorf("socket: %w", err))
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(stepTimeout.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	const batchBegin, batchEnd, delTable = 0x10, 0x11, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_DELTABLE
	part := func(typ, flags uint16, seq uint32, gen []byte) []byte {
		b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(gen)))
		b = binary.NativeEndian.AppendUint16(b, typ)
		b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST)
		b = append(binary.NativeEndian.AppendUint32(b, seq), 0, 0, 0, 0)
		return append(b, gen...)
	}
	batch := part(batchBegin, 0, 1, []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES})
	batch = append(batch, part(delTable, unix.NLM_F_ACK, 2, []byte{0, 0, 0, 0})...)
	batch = append(batch, part(batchEnd, 0, 3, []byte{0, 0, 0, unix.NFNL_SUBSYS_NFTABLES})...)
	if err := unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fail(fmt.Errorf("send: %w", err))
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return fail(fmt.Errorf("receive: %w", err))
	}
	if n >= 20 {
		if e := int32(binary.NativeEndian.Uint32(buf[16:])); e != 0 {
			return fail(syscall.Errno(-e))
		}
	}
	return done("rules flushed")
}

// unshareFlags unshares the namespaces in Port. A user namespace needs a
// single thread, so it is asked for by a raw clone in cloneFlags.
func unshareFlags(j job.Job) job.Result {
	runtime.LockOSThread()
	return outcome(unix.Unshare(j.Port), "unshared")
}

// cloneFlags starts a child in the new namespaces named by Port.
func cloneFlags(j job.Job) job.Result {
	cmd := exec.Command("/proc/self/exe", "one")
	cmd.Stdin = strings.NewReader(`{"id":"x","op":"status"}`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(j.Port)}
	if j.Port&unix.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return outcome(cmd.Run(), "child in new namespaces")
}

// nestedNamespace is what an attacker would do with a user namespace: become
// root in it and undo the rules of the network namespace.
func nestedNamespace(job.Job) job.Result {
	cmd := exec.Command("/proc/self/exe", "one")
	cmd.Stdin = strings.NewReader(`{"id":"x","op":"netlink.nft"}`)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if err != nil {
		return fail(err)
	}
	return job.Result{Status: -1, Done: strings.Contains(string(out), `"done":true`), Text: first(out, 200)}
}

// setnsProc enters the namespace file at Via.
func setnsProc(j job.Job) job.Result {
	fd, err := unix.Open(j.Via, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	return outcome(unix.Setns(fd, 0), "entered "+j.Via)
}

// setnsPidfd enters the namespaces of pid 1 by its pidfd.
func setnsPidfd(job.Job) job.Result {
	fd, err := unix.PidfdOpen(1, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	return outcome(unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWNS), "entered pid 1's namespaces")
}

func scratch() (string, error) { return os.MkdirTemp("", "probe-") }

func mountTmpfs(job.Job) job.Result {
	dir, err := scratch()
	if err != nil {
		return fail(err)
	}
	defer os.Remove(dir)
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // not mounted: nothing to undo
	return outcome(unix.Mount("tmpfs", dir, "tmpfs", 0, ""), "mounted")
}

func mountBind(j job.Job) job.Result {
	dir, err := scratch()
	if err != nil {
		return fail(err)
	}
	defer os.Remove(dir)
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // not mounted: nothing to undo
	return outcome(unix.Mount(filepath.Dir(j.Via), dir, "", unix.MS_BIND|unix.MS_REC, ""), "mounted")
}

func mountProc(job.Job) job.Result {
	dir, err := scratch()
	if err != nil {
		return fail(err)
	}
	defer os.Remove(dir)
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // not mounted: nothing to undo
	return outcome(unix.Mount("proc", dir, "proc", 0, ""), "mounted")
}

// umountPath takes away what hides something at Via. Outside there is nothing
// to take away, so it makes a mount of its own first where it may.
func umountPath(j job.Job) job.Result {
	return outcome(unix.Unmount(j.Via, unix.MNT_DETACH), "unmounted")
}

func fsOpen(job.Job) job.Result {
	name := []byte("tmpfs\x00")
	fd, _, e := unix.Syscall(unix.SYS_FSOPEN, uintptr(unsafe.Pointer(&name[0])), 0, 0)
	if e != 0 {
		return fail(e)
	}
	return outcome(unix.Close(int(fd)), "fsopen")
}

func chrootDir(job.Job) job.Result { return outcome(unix.Chroot("/"), "chrooted") }

func pivotRoot(job.Job) job.Result {
	// Even a call that must fail for its arguments fails with EPERM first where it is not allowed at all.
	err := unix.PivotRoot("/", "/")
	if err == unix.EINVAL || err == unix.EBUSY { //nolint:errorlint // a bare errno of the kernel
		return done("allowed to pivot: " + err.Error())
	}
	return outcome(err, "pivoted")
}

// interfaces reports the names of all interfaces, for texts.
func interfaces() string {
	all, err := net.Interfaces()
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}
