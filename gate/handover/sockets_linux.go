package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/gate"
	"egressd/netns"
	"egressd/policy"
)

func (s Sockets) doors() (d gate.Doors, err error) {
	defer func() {
		if err != nil {
			_ = d.Close() // they were never used
			d = gate.Doors{}
		}
	}()
	explicit, err := listener("proxy", s.Explicit)
	if err != nil {
		return d, err
	}
	d.Explicit = []net.Listener{explicit}
	if d.DNSTCP, err = listener("dns", s.DNSTCP); err != nil {
		return d, err
	}
	if err := check("dns", s.DNSUDP, unix.SOCK_DGRAM); err != nil {
		return d, err
	}
	if d.DNSUDP, err = netns.PacketConn(s.DNSUDP); err != nil {
		return d, fmt.Errorf("dns door: %w", err)
	}
	for _, f := range s.Transparent {
		ln, err := listener("transparent", f)
		if err != nil {
			return d, err
		}
		d.Transparent = append(d.Transparent, ln)
	}
	if s.Refusals != nil {
		if d.Refusals, err = netlink(s.Refusals); err != nil {
			return d, fmt.Errorf("refusals: %w", err)
		}
	}
	return d, s.localhost(&d)
}

func (s Sockets) localhost(d *gate.Doors) error {
	if len(s.Localhost) == 0 {
		return nil
	}
	host, err := policy.ParseHost(gate.HostInternal)
	if err != nil {
		return err // unreachable: it is a constant
	}
	for _, l := range s.Localhost {
		ln, err := listener(fmt.Sprintf("localhost:%d", l.Port), l.File)
		if err != nil {
			return err
		}
		d.Fixed = append(d.Fixed, gate.Fixed{Listener: ln, Host: host, Port: l.Port})
	}
	return nil
}

func listener(what string, f *os.File) (net.Listener, error) {
	if err := check(what, f, unix.SOCK_STREAM); err != nil {
		return nil, err
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("%s door: %w", what, err)
	}
	return ln, nil
}

var errMissing = errors.New("its socket is missing")

// check refuses a descriptor that is not an IP socket of the wanted type, and a
// stream socket that does not listen.
//
// Threat: a launcher hands over a file, a terminal or a socket of another kind,
// on which a read never ends or does something else -> nothing but the types
// named here is used. Left over: the launcher may keep a copy and change its flags;
// for what that does see door, and netns.PacketConn.
func check(what string, f *os.File, typ int) error {
	if f == nil {
		return fmt.Errorf("%s door: %w", what, errMissing)
	}
	fd := int(f.Fd())
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("%s door: not a socket: %w", what, err)
	}
	have, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("%s door: %w", what, err)
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil {
		return fmt.Errorf("%s door: %w", what, err)
	}
	ip := domain == unix.AF_INET || domain == unix.AF_INET6
	if !ip || have != typ || (typ == unix.SOCK_STREAM) != (listens != 0) {
		return fmt.Errorf("%s door: the socket is of another kind (family %d, type %d, listening %d)", what, domain, have, listens)
	}
	return nil
}

// netlink copies the socket of the capture rules' log to a non-blocking file.
func netlink(f *os.File) (*os.File, error) {
	fd := int(f.Fd())
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return nil, err
	}
	proto, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return nil, err
	}
	if domain != unix.AF_NETLINK || proto != unix.NETLINK_NETFILTER {
		return nil, fmt.Errorf("the socket is of another kind (family %d, protocol %d)", domain, proto)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(dup, true); err != nil { // Fd made it blocking
		unix.Close(dup)
		return nil, err
	}
	return os.NewFile(uintptr(dup), "refusals"), nil
}

// guard makes the doors of d safe to serve although their launcher may have kept
// copies: accepts take turns, and closing a door shuts the socket itself down, so
// that every copy ends with it and every blocked call returns. After an error all
// doors are closed.
func guard(d gate.Doors, turns ...chan struct{}) (_ gate.Doors, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	all := []*net.Listener{&d.DNSTCP}
	for _, list := range [][]net.Listener{d.Explicit, d.Transparent} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for i := range d.Fixed {
		all = append(all, &d.Fixed[i].Listener)
	}
	for _, ln := range all {
		t, ok := (*ln).(*net.TCPListener)
		if !ok {
			return d, fmt.Errorf("a door is not a TCP listener: %T", *ln) // unreachable: it was checked
		}
		if *ln, err = newDoor(t, turns...); err != nil {
			*ln = t
			return d, err
		}
	}
	d.DNSUDP = shutPacketConn{d.DNSUDP}
	return d, nil
}

type shutPacketConn struct{ net.PacketConn }

// SyscallConn lets the DNS door read many packets at a time.
func (p shutPacketConn) SyscallConn() (syscall.RawConn, error) {
	c, ok := p.PacketConn.(syscall.Conn)
	if !ok {
		return nil, syscall.EINVAL // unreachable: it is a socket
	}
	return c.SyscallConn()
}

func (p shutPacketConn) Close() error {
	shut(p.PacketConn)
	return p.PacketConn.Close()
}

func shut(socket any) {
	c, ok := socket.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails if it is closed already
		_ = unix.Shutdown(int(fd), unix.SHUT_RDWR) // ENOTCONN for UDP, but its readers wake up
	})
}
