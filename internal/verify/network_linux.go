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

// noRoute tells a container without that network from one whose packets left.
func noRoute(err error) bool {
	for _, errno := range []unix.Errno{unix.ENETUNREACH, unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// refusedHere are the answers of our own kernel.
func refusedHere(err error) bool {
	for _, errno := range []unix.Errno{unix.ECONNREFUSED, unix.EPERM, unix.EACCES, unix.ECONNRESET, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return noRoute(err)
}

// tcpTo connects. A captured connection ends in this very namespace: its other
// end is a socket here.
func tcpTo(addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, _ Config) (r Result) {
		// Egressd may have reset a connection that it denies before anybody
		// looks for its socket, so look again.
		for range 8 {
			var reset bool
			if r, reset = connectTo(ctx, addr); !reset {
				return r
			}
		}
		return r
	}
}

func connectTo(ctx context.Context, addr string) (r Result, reset bool) {
	var d net.Dialer
	d.SetMultipathTCP(false)
	c, err := d.DialContext(ctx, "tcp", addr)
	switch {
	case err != nil && refusedHere(err):
		return pass(last(err)), errors.Is(err, unix.ECONNRESET)
	case err != nil:
		return leak("nobody here refused it: "+last(err), adviseCapture), false
	}
	defer c.Close()
	port, err := endsHere(c.LocalAddr().(*net.TCPAddr).AddrPort())
	switch {
	case err != nil:
		return leak(err.Error(), ""), false
	case port != 0:
		return pass(fmt.Sprintf("ends at egressd, port %d", port)), false
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, unix.ECONNRESET) {
		return pass("reset at once"), true
	}
	return leak("connected, and the other end is not here", adviseCapture), false
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
	return func(ctx context.Context, _ Config) Result {
		d := net.Dialer{Control: broadcast}
		return datagram(ctx, d, addr)
	}
}

func udpBound(device, addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, _ Config) Result {
		d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) }), err)
		}}
		return datagram(ctx, d, addr)
	}
}

func broadcast(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1) })
}

func datagram(ctx context.Context, d net.Dialer, addr string) Result {
	c, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return ofError(err)
	}
	defer c.Close()
	setDeadline(ctx, c)
	if _, err := c.Write([]byte("egressd verify")); err != nil {
		return ofError(err)
	}
	if _, err := c.Read(make([]byte, 512)); err != nil {
		return ofError(err)
	}
	return leak("somebody answered", adviseCapture)
}

func ofError(err error) Result {
	switch {
	case refusedHere(err):
		return pass(last(err))
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		return leak("sent, and nobody here refused it", adviseCapture)
	default:
		return leak("nobody here refused it: "+last(err), adviseCapture)
	}
}

// pingTo uses a ping socket, which needs no capability; icmp(7).
func pingTo(addr string) func(context.Context, Config) Result {
	return func(ctx context.Context, _ Config) Result {
		a := netip.MustParseAddr(addr)
		family, proto, echo := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
		var to unix.Sockaddr = &unix.SockaddrInet4{}
		if a.Is6() {
			family, proto, echo = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
			to = &unix.SockaddrInet6{Addr: a.As16()}
		} else {
			to = &unix.SockaddrInet4{Addr: a.As4()}
		}
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return pass(err.Error())
		}
		defer unix.Close(fd)
		left := time.Second
		if at, ok := ctx.Deadline(); ok {
			left = max(time.Until(at), time.Millisecond)
		}
		tv := unix.NsecToTimeval(left.Nanoseconds())
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
		if err := unix.Connect(fd, to); err != nil {
			return ofError(err)
		}
		if _, err := unix.Write(fd, []byte{echo, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			return ofError(err)
		}
		_, err = unix.Read(fd, make([]byte, 512))
		switch {
		case err == nil:
			return leak("answered", adviseCapture)
		case errors.Is(err, unix.EAGAIN):
			return leak("sent, and nobody here refused it", adviseCapture)
		default:
			return ofError(err)
		}
	}
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
