package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// loIndex is the interface index of lo in every network namespace.
const loIndex = 1

// linkKind is a device that swallows what is sent to it.
const linkKind = "dummy"

// ethIndex is the interface index we give eth0: modules may have put devices
// of their own (tunl0, sit0) at the small numbers.
const ethIndex = 100

// addrGenModeNone is IN6_ADDR_GEN_MODE_NONE, linux/if_link.h.
const addrGenModeNone = 1

// OwnAddr is the non-loopback address inside (TEST-NET-1, RFC 5737: nothing a
// policy could want to reach). Without one getaddrinfo with AI_ADDRCONFIG
// finds no address family. It is also what connections come from.
const OwnAddr = "192.0.2.1"

func ownAddr() []byte { return []byte{192, 0, 2, 1} }

// Linked is a namespace that leads nowhere, not captured yet.
type Linked struct {
	IPv6  bool // the kernel has IPv6
	Dummy bool // an eth0 that is up exists
}

// Link gives the calling thread's network namespace its devices and routes. It
// needs CAP_NET_ADMIN over that namespace, and is meant for a namespace that
// was made for this: it is called once, before anything else runs there. The
// thread stays the caller's for as long as this takes: it is locked, or every
// thread is in the namespace.
func Link() (*Linked, error) { return LinkKind(linkKind) }

// LinkKind is Link with another kind of device for eth0.
//
// It brings lo up and makes every address local to it (AnyIP): what
// is sent anywhere arrives here, and nothing can be routed out.
//
// An eth0 of that kind, which leads nowhere, is there for programs that take a
// machine with nothing but lo for offline; not every kernel has the device.
func LinkKind(kind string) (*Linked, error) {
	c, err := dial(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.Close()
	up, err := c.send([]message{linkUp(loIndex), newLink(kind), withoutLinkLocal(), linkUp(ethIndex)})
	if err := first(up[:min(1, len(up))], err); err != nil {
		return nil, fmt.Errorf("bring lo up: %w", err)
	}
	l := &Linked{Dummy: up[1] == nil && up[3] == nil}
	home := uint32(loIndex)
	if l.Dummy {
		home = ethIndex
	}
	done, err := c.send([]message{
		newAddr(home, ownAddr()),
		localDefault(unix.AF_INET, ownAddr()),
		localDefault(unix.AF_INET6, nil),
	})
	if err := first(done[:min(2, len(done))], err); err != nil {
		return nil, fmt.Errorf("make every address local: %w", err)
	}
	if err := done[2]; err != nil && !ipv6Absent(err) {
		return nil, fmt.Errorf("make every IPv6 address local: %w", err)
	}
	l.IPv6 = done[2] == nil
	return l, nil
}

// ipv6Absent tells a kernel without IPv6, or with IPv6 off on lo, from a
// failure: without the route and without the address nothing IPv6 moves.
func ipv6Absent(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) ||
		errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV)
}

// linkUp is RTM_NEWLINK with IFF_UP: struct ifinfomsg, rtnetlink(7).
func linkUp(index uint32) message {
	b := ifinfomsg(index)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	return message{unix.RTM_NEWLINK, unix.NLM_F_ACK, string(b)}
}

func ifinfomsg(index uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}

// newFlags ask for something that does not exist yet.
const newFlags = unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL

// newLink makes eth0.
func newLink(kind string) message {
	return message{unix.RTM_NEWLINK, newFlags, string(slices.Concat(
		ifinfomsg(ethIndex),
		attr(unix.IFLA_IFNAME, text("eth0")),
		nested(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, text(kind))),
	))}
}

// withoutLinkLocal keeps the kernel from giving eth0 an IPv6 address of its
// own and announcing it. Not part of newLink: a link has IPv6 settings only
// once it exists. Without IPv6 it fails, and is not needed.
func withoutLinkLocal() message {
	inet6 := nested(unix.AF_INET6, attr(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{addrGenModeNone}))
	return message{unix.RTM_NEWLINK, unix.NLM_F_ACK, string(append(ifinfomsg(ethIndex), nested(unix.IFLA_AF_SPEC, inet6)...))}
}

// newAddr is RTM_NEWADDR of an IPv4 address with a host mask: struct ifaddrmsg.
func newAddr(index uint32, addr []byte) message {
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[3] = unix.AF_INET, byte(8*len(addr)), unix.RT_SCOPE_UNIVERSE
	binary.NativeEndian.PutUint32(b[4:], index)
	return message{unix.RTM_NEWADDR, newFlags, string(slices.Concat(b, attr(unix.IFA_LOCAL, addr), attr(unix.IFA_ADDRESS, addr)))}
}

// localDefault is "ip route add local default dev lo [src ADDR]": struct rtmsg.
func localDefault(family byte, src []byte) message {
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[4], b[5] = family, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC
	b[6], b[7] = unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	b = append(b, attr(unix.RTA_OIF, number(loIndex))...)
	if src != nil {
		b = append(b, attr(unix.RTA_PREFSRC, src)...)
	}
	return message{unix.RTM_NEWROUTE, newFlags, string(b)}
}
