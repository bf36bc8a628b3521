package verify

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func bigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

// refusal is the error in a netlink answer, linux/netlink.h; 0: none.
func refusal(b []byte) unix.Errno {
	if len(b) < 20 || binary.NativeEndian.Uint16(b[4:]) != unix.NLMSG_ERROR {
		return 0
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(b[16:])))
}

// noRoute reports whether nothing can be sent there at all: choosing a route,
// which sends nothing, fails already.
func noRoute(addr string) bool {
	var d net.Dialer
	c, err := d.Dial("udp", addr)
	if err != nil {
		return errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)
	}
	c.Close()
	return false
}

// forbidden are answers that nobody gives but our own kernel, when asked to send.
func forbidden(err error) bool {
	for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.EAFNOSUPPORT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// turned reports whether err is a refusal, which may be our own kernel's or a
// host's outside.
func turned(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ECONNRESET)
}

// silence is how long an attempt waits: our own kernel refuses at once.
const silence = time.Second

// attempt is one that our own kernel should refuse. Who refused is told by the
// counters of this namespace.
type attempt struct {
	addr   string
	before uint64
}

func begin(ctx context.Context, c Config, addr string) (context.Context, context.CancelFunc, attempt) {
	ctx, cancel := context.WithTimeout(ctx, min(silence, c.timeout()))
	return ctx, cancel, attempt{addr: addr, before: refusals()}
}

// judge says how an attempt ended that got no answer.
func (a attempt) judge(err error) Result {
	switch {
	case forbidden(err):
		return pass(last(err))
	case turned(err) && refusals() > a.before:
		return pass(last(err))
	case turned(err):
		return leak(last(err)+" by somebody outside", adviseCapture)
	case noRoute(a.addr):
		return pass("there is no route")
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, unix.EAGAIN):
		return leak("sent, and nobody here refused it", adviseCapture)
	default:
		return leak("nobody here refused it: "+last(err), adviseCapture)
	}
}

// refusals counts what this namespace has refused: resets and messages that a
// destination is unreachable (RFC 2013, RFC 4293).
func refusals() uint64 {
	var sum uint64
	for _, c := range []struct{ file, table, name string }{
		{"/proc/net/snmp", "Tcp:", "OutRsts"}, {"/proc/net/snmp", "Icmp:", "OutDestUnreachs"},
	} {
		b, err := os.ReadFile(c.file)
		if err == nil {
			sum += counter(string(b), c.table, c.name)
		}
	}
	b, err := os.ReadFile("/proc/net/snmp6")
	if err != nil {
		return sum // no IPv6
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Icmp6OutDestUnreachs" {
			n, _ := strconv.ParseUint(f[1], 10, 64) // a kernel writes numbers
			sum += n
		}
	}
	return sum
}

// counter reads /proc/net/snmp: a line of names and a line of values for each
// table.
func counter(snmp, table, name string) uint64 {
	var names []string
	for line := range strings.Lines(snmp) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != table {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		if i := slices.Index(names, name); i > 0 && i < len(f) {
			n, _ := strconv.ParseUint(f[i], 10, 64) // a kernel writes numbers
			return n
		}
	}
	return 0
}

// tcpTo connects. A captured connection ends in this very namespace: its other
// end is a socket here.
func tcpTo(addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, c Config) (r Result) {
		// Egressd may have reset a connection that it denies before anybody
		// looks for its socket, so look again.
		for range 8 {
			var reset bool
			if r, reset = connectTo(ctx, c, addr); !reset {
				return r
			}
		}
		return r
	}
}

// A connection whose other end is not found is looked at so often, after a pause:
// how long a reset may take to arrive on a busy machine.
const (
	looks   = 3
	pausing = 100 * time.Millisecond
)

// connectTo connects and says where the connection ends. again: it ended before
// that could be seen.
func connectTo(ctx context.Context, config Config, addr string) (r Result, again bool) {
	ctx, cancel, a := begin(ctx, config, addr)
	defer cancel()
	var d net.Dialer
	d.SetMultipathTCP(false)
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return a.judge(err), errors.Is(err, unix.ECONNRESET)
	}
	defer conn.Close()
	c := conn.(*net.TCPConn)
	elsewhere := leak("connected, and the other end is not here", adviseCapture)
	for range looks {
		port, err := endsHere(c.LocalAddr().(*net.TCPAddr).AddrPort())
		switch {
		case err != nil:
			return leak(err.Error(), ""), false
		case port != 0:
			return pass(fmt.Sprintf("ends at egressd, port %d", port)), false
		}
		switch err := heard(c); {
		case errors.Is(err, unix.ECONNRESET):
			return a.judge(err), true
		case errors.Is(err, io.EOF):
			return elsewhere, true
		case err == nil:
			return elsewhere, false // somebody spoke
		}
	}
	return elsewhere, false
}

// heard waits for a byte, the end or a reset. A read whose deadline has passed by
// the time it starts does not ask the kernel, so that is asked once more.
func heard(c *net.TCPConn) error {
	_ = c.SetReadDeadline(time.Now().Add(pausing))
	b := make([]byte, 1)
	_, err := c.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var now error
	if err := raw.Control(func(fd uintptr) {
		n, _, now = unix.Recvfrom(int(fd), b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	}); err != nil {
		return err
	}
	if now == nil && n == 0 {
		return io.EOF
	}
	return now
}

// endsHere looks for the other end of a connection among the sockets of this
// namespace and reports its port; 0: it is not here.
func endsHere(local netip.AddrPort) (uint16, error) {
	local = netip.AddrPortFrom(local.Addr().Unmap().WithZone(""), local.Port())
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		port := peerIn(f, local)
		f.Close()
		if port != 0 {
			return port, nil
		}
	}
	return 0, nil
}

// peerIn reads a table of sockets, proc(5): local and remote address as hex.
func peerIn(table io.Reader, local netip.AddrPort) uint16 {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		remote, err := hexAddr(fields[2])
		if err != nil || remote != local {
			continue
		}
		if here, err := hexAddr(fields[1]); err == nil {
			return here.Port()
		}
	}
	return 0
}

// hexAddr reads 0100007F:1F90: words of four bytes as the processor keeps
// them, and a port.
func hexAddr(s string) (netip.AddrPort, error) {
	addr, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(addr)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, errors.New("no address")
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	p, err := hex.DecodeString(port)
	a, ok := netip.AddrFromSlice(b)
	if err != nil || !ok || len(p) != 2 {
		return netip.AddrPort{}, errors.New("no address")
	}
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(p)), nil
}

// udpTo sends a datagram. Our kernel refuses at once; silence means that it
// was sent.
func udpTo(addr string) func(context.Context, Config) Result {
	return datagram(net.Dialer{Control: broadcast}, addr)
}

func udpBound(device, addr string) func(context.Context, Config) Result {
	return datagram(net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) }), err)
	}}, addr)
}

func broadcast(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1) })
}

func datagram(d net.Dialer, addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel, a := begin(ctx, config, addr)
		defer cancel()
		c, err := d.DialContext(ctx, "udp", addr)
		if err != nil {
			return a.judge(err)
		}
		defer c.Close()
		setDeadline(ctx, c)
		if _, err := c.Write([]byte("egressd verify")); err != nil {
			return a.judge(err)
		}
		if _, err := c.Read(make([]byte, 512)); err != nil {
			return a.judge(err)
		}
		return leak("somebody answered", adviseCapture)
	}
}

// pingTo uses a ping socket, which needs no capability; icmp(7).
func pingTo(addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		_, cancel, a := begin(ctx, config, net.JoinHostPort(addr, "9"))
		defer cancel()
		if err := ping(netip.MustParseAddr(addr)); err != nil {
			return a.judge(err)
		}
		return leak("answered", adviseCapture)
	}
}

func ping(a netip.Addr) error {
	family, proto, echo := unix.AF_INET6, unix.IPPROTO_ICMPV6, byte(128)
	var to unix.Sockaddr = &unix.SockaddrInet6{Addr: a.As16()}
	if a.Is4() {
		family, proto, echo = unix.AF_INET, unix.IPPROTO_ICMP, 8
		to = &unix.SockaddrInet4{Addr: a.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(silence.Nanoseconds())
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte{echo, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	_, err = unix.Read(fd, make([]byte, 512))
	return err
}

func setDeadline(ctx context.Context, c net.Conn) {
	if at, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(at)
	}
}

// last is the innermost error: "connection refused".
func last(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}
