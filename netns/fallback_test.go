//go:build linux

package netns

import (
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

// withoutNetfilter makes this thread see a kernel without nfnetlink: a
// system-call filter (classic BPF) refuses its sockets. The thread dies with
// the test.
func withoutNetfilter(t *testing.T) {
	t.Helper()
	const number, args = 0, 16 // struct seccomp_data; low halves first
	if binaryBigEndian() {
		t.Skip("written for little-endian machines")
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	code := []unix.SockFilter{
		load(number), unless(unix.SYS_SOCKET, 5),
		load(args), unless(unix.AF_NETLINK, 3),
		load(args + 2*8), unless(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		t.Skipf("no system-call filter: %v", e)
	}
}

func binaryBigEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 0
}

func TestFallsBackToAnyIP(t *testing.T) {
	freshNamespace(t)
	withoutNetfilter(t)
	d, err := capture.Setup(capture.Config{Ports: []uint16{443}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if d.Mode != capture.ModeAnyIP || d.Refusals != nil || !strings.Contains(strings.Join(d.Notes, "\n"), "can't redirect with nftables") {
		t.Errorf("got %+v", d)
	}
	world{doors: d}.serve(t)
	if got, err := ask("8.8.8.8:443", netip.Addr{}); err != nil || got != "gate 8.8.8.8:443" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Who asks for nftables by name does not get less.
func TestNoFallbackWhenNamed(t *testing.T) {
	freshNamespace(t)
	withoutNetfilter(t)
	if d, err := capture.Setup(capture.Config{Mode: capture.ModeNFT, Ports: []uint16{443}}); err == nil {
		d.Close()
		t.Error("no error")
	}
}
