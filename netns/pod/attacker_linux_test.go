package pod

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
	"egressd/netns/nft"
)

// The agent's program: another process, of another user where there is one,
// with no capability or only the one that it is given. It tries what it is
// told to by name, a line each, and says how that ended.

// attacker is the program's main function.
func attacker() int {
	runtime.LockOSThread() // capabilities belong to threads
	var keep uint32
	if os.Getenv(attackerEnv) == "raw" {
		keep = 1 << unix.CAP_NET_RAW
	}
	if err := keepOnly(keep); err != nil {
		fmt.Println("capabilities:", err)
		return 1
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Println(strings.ReplaceAll(try(in.Text()), "\n", " "))
	}
	return 0
}

func try(name string) string {
	for _, a := range slices.Concat(attacks, onRules) {
		if a.name == name {
			said, err := a.run()
			if err != nil {
				return "error: " + err.Error()
			}
			return said
		}
	}
	return "error: there is no such attack"
}

// keepOnly gives up every capability of the calling thread but those in keep.
func keepOnly(keep uint32) error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep, Permitted: keep, Inheritable: keep}}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return unix.Capset(&hdr, &data[0])
}

// agent is the running program.
type agent struct {
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Reader
}

// startAgent starts the program in the thread's namespace.
func startAgent(t testing.TB, raw bool) *agent {
	t.Helper()
	kind := "plain"
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if asRoot() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 12345, Gid: 12345}
	}
	if raw {
		kind = "raw"
		if asRoot() {
			cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_RAW}
		}
	}
	cmd.Env = []string{attackerEnv + "=" + kind}
	cmd.Stderr = os.Stderr
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd.Stdin = in
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &agent{cmd: cmd, in: feed, out: bufio.NewReader(out)}
	t.Cleanup(func() { feed.Close(); _ = cmd.Wait() })
	return a
}

// try reports how the attack ended as the program sees it.
func (a *agent) try(t testing.TB, name string) string {
	t.Helper()
	if _, err := fmt.Fprintln(a.in, name); err != nil {
		t.Fatal(err)
	}
	said, err := a.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: the agent has ended: %v", name, err)
	}
	return strings.TrimSpace(said)
}

// What attacks are made of.

const wait = 150 // milliseconds for what should be immediate

func open(family, kind, proto int) (int, error) {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	tv := unix.NsecToTimeval(wait * 1e6)
	for _, o := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, o, &tv); err != nil {
			return -1, err
		}
	}
	return fd, nil
}

func sockaddr(addr string) unix.Sockaddr {
	ap := netip.MustParseAddrPort(addr)
	if ap.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: ap.Addr().As4(), Port: int(ap.Port())}
	}
	sa := &unix.SockaddrInet6{Addr: ap.Addr().As16(), Port: int(ap.Port())}
	if ap.Addr().Zone() != "" {
		sa.ZoneId = zone(ap.Addr().Zone())
	}
	return sa
}

// zone is the index of an interface.
func zone(name string) uint32 {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req) != nil {
		return 0
	}
	return req.Uint32()
}

func family(addr string) int {
	if netip.MustParseAddrPort(addr).Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// option changes a socket before it is used.
type option func(fd int) error

func boundTo(device string) option {
	return func(fd int) error { return unix.BindToDevice(fd, device) }
}

func setInt(level, name, value int) option {
	return func(fd int) error { return unix.SetsockoptInt(fd, level, name, value) }
}

func setBytes(level, name int, value []byte) option {
	return func(fd int) error { return unix.SetsockoptString(fd, level, name, string(value)) }
}

func from(addr string) option {
	return func(fd int) error { return unix.Bind(fd, sockaddr(addr)) }
}

func prepare(kind, proto int, addr string, options []option) (int, error) {
	fd, err := open(family(addr), kind, proto)
	if err != nil {
		return -1, err
	}
	for _, o := range options {
		if err := o(fd); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("option: %w", err)
		}
	}
	return fd, nil
}

// stream connects and reports what the other end says first.
func stream(addr string, options ...option) func() (string, error) {
	return func() (string, error) { return streamOver(unix.IPPROTO_TCP, addr, options...) }
}

func streamOver(proto int, addr string, options ...option) (string, error) {
	fd, err := prepare(unix.SOCK_STREAM, proto, addr, options)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sockaddr(addr)); err != nil {
		return "", os.NewSyscallError("connect", err)
	}
	return receive(fd)
}

func receive(fd int) (string, error) {
	b := make([]byte, 512)
	n, err := unix.Read(fd, b)
	if err != nil {
		return "", os.NewSyscallError("read", err)
	}
	return strings.TrimSpace(string(b[:n])), nil
}

// datagram sends one, and reports the answer.
func datagram(addr string, options ...option) func() (string, error) {
	return func() (string, error) { return datagramOver(0, addr, []byte("LEAK"), options...) }
}

func datagramOver(proto int, addr string, data []byte, options ...option) (string, error) {
	fd, err := prepare(unix.SOCK_DGRAM, proto, addr, options)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sockaddr(addr)); err != nil {
		return "", os.NewSyscallError("connect", err)
	}
	if _, err := unix.Write(fd, data); err != nil {
		return "", os.NewSyscallError("write", err)
	}
	return receive(fd)
}

// ping sends an echo request (RFC 792, RFC 4443) from a ping socket, which
// needs no capability where net.ipv4.ping_group_range has the group.
func ping(addr string) func() (string, error) {
	return func() (string, error) {
		proto, echo := unix.IPPROTO_ICMP, []byte{8, 0, 0, 0, 0, 0, 0, 0}
		if family(addr) == unix.AF_INET6 {
			proto, echo = unix.IPPROTO_ICMPV6, []byte{128, 0, 0, 0, 0, 0, 0, 0}
		}
		said, err := datagramOver(proto, addr, echo)
		if err == nil {
			said = "answered"
		}
		return said, err
	}
}

// rawSend sends data from a raw socket.
func rawSend(proto int, addr string, data []byte, options ...option) func() (string, error) {
	return func() (string, error) {
		fd, err := prepare(unix.SOCK_RAW, proto, addr, options)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		sa := sockaddr(addr)
		if v6, ok := sa.(*unix.SockaddrInet6); ok {
			v6.Port = 0
		}
		if err := unix.Sendto(fd, data, 0, sa); err != nil {
			return "", os.NewSyscallError("sendto", err)
		}
		return "sent", nil
	}
}

// fastOpen sends data with the first segment (RFC 7413).
func fastOpen(addr string) func() (string, error) {
	return func() (string, error) {
		fd, err := open(family(addr), unix.SOCK_STREAM, unix.IPPROTO_TCP)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		if err := unix.Sendto(fd, []byte("LEAK"), unix.MSG_FASTOPEN, sockaddr(addr)); err != nil {
			return "", os.NewSyscallError("sendto", err)
		}
		return receive(fd)
	}
}

// frameSend sends an Ethernet frame to everybody from a packet socket.
func frameSend(kind uint16, payload []byte, options ...option) func() (string, error) {
	return func() (string, error) {
		fd, err := open(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		for _, o := range options {
			if err := o(fd); err != nil {
				return "", err
			}
		}
		to := &unix.SockaddrLinklayer{Protocol: kind<<8 | kind>>8, Ifindex: int(zone("eth0")), Halen: 6}
		copy(to.Addr[:], "\xff\xff\xff\xff\xff\xff")
		if err := unix.Sendto(fd, payload, 0, to); err != nil {
			return "", os.NewSyscallError("sendto", err)
		}
		return "sent", nil
	}
}

// join makes the kernel tell the network that this socket wants a group's
// packets.
func join(group string) func() (string, error) {
	return func() (string, error) {
		a := netip.MustParseAddr(group)
		fd, err := open(unix.AF_INET6, unix.SOCK_DGRAM, 0)
		if a.Is4() {
			fd, err = open(unix.AF_INET, unix.SOCK_DGRAM, 0)
		}
		if err != nil {
			return "", err
		}
		kept = append(kept, fd) // a member until the program ends
		if a.Is4() {
			err = unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP,
				&unix.IPMreqn{Multiaddr: a.As4(), Ifindex: int32(zone("eth0"))})
		} else {
			err = unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP,
				&unix.IPv6Mreq{Multiaddr: a.As16(), Interface: zone("eth0")})
		}
		return "joined", err
	}
}

// kept are descriptors that stay open.
var kept []int

// dropTable asks the kernel to remove our rules.
func dropTable() (string, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := (nft.Table{Family: "inet", Name: tableName}).Remove(c); err != nil {
		return "", err
	}
	return "removed", nil
}

// nested tries an attack as root of a user namespace of its own, in which
// egressd's number is the agent's.
func nested(name string) func() (string, error) {
	return func() (string, error) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{attackerEnv + "=nested"}
		cmd.Stdin = strings.NewReader(name + "\n")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL}
		if id := os.Getuid(); id != 0 { // nobody may map root without a capability
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: testUser, HostID: id, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: testUser, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.Output()
		return string(out), err
	}
}

// become tries to be egressd's user.
func become() (string, error) {
	for _, call := range []uintptr{unix.SYS_SETUID, unix.SYS_SETFSUID} {
		if _, _, e := unix.RawSyscall(call, testUser, 0, 0); e == 0 && os.Getuid() == testUser {
			return "became egressd's user", nil
		}
	}
	return datagramOver(0, far4+":443", []byte("LEAK"))
}
