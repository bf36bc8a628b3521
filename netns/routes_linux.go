package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
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

// ownAddr is the non-loopback address inside (TEST-NET-1, RFC 5737: nothing a
// policy could want to reach). Without one getaddrinfo with AI_ADDRCONFIG
// finds no address family. It is also what connections come from.
var ownAddr = netip.AddrFrom4([4]byte{192, 0, 2, 1})

// links is what the set-up of interfaces and routes achieved.
type links struct {
	ipv6  bool
	dummy bool
}

// setupLinks brings lo up and makes every address local to it (AnyIP): what
// is sent anywhere arrives here, and nothing can be routed out.
//
// An eth0 of that kind, which leads nowhere, is there for programs that take a
// machine with nothing but lo for offline; not every kernel has the device.
func setupLinks(kind string) (links, error) {
	c, err := dial(unix.NETLINK_ROUTE)
	if err != nil {
		return links{}, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.close()
	up, err := c.send([]netlink.Message{linkUp(loIndex), newLink(kind), withoutLinkLocal(), linkUp(ethIndex)})
	if err := first(up[:min(1, len(up))], err); err != nil {
		return links{}, fmt.Errorf("bring lo up: %w", err)
	}
	l := links{dummy: up[1] == nil && up[3] == nil}
	home := uint32(loIndex)
	if l.dummy {
		home = ethIndex
	}
	done, err := c.send([]netlink.Message{
		newAddr(home, ownAddr),
		localDefault(unix.AF_INET, ownAddr),
		localDefault(unix.AF_INET6, netip.Addr{}),
	})
	if err := first(done[:min(2, len(done))], err); err != nil {
		return links{}, fmt.Errorf("make every address local: %w", err)
	}
	if err := done[2]; err != nil && !ipv6Absent(err) {
		return links{}, fmt.Errorf("make every IPv6 address local: %w", err)
	}
	l.ipv6 = done[2] == nil
	return l, nil
}

// ipv6Absent tells a kernel without IPv6, or with IPv6 off on lo, from a
// failure: without the route and without the address nothing IPv6 moves.
func ipv6Absent(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EAFNOSUPPORT) ||
		errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENODEV)
}

// linkUp is RTM_NEWLINK with IFF_UP: struct ifinfomsg, rtnetlink(7).
func linkUp(index uint32) netlink.Message {
	b := ifinfomsg(index)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	return message(unix.RTM_NEWLINK, 0, b, nil)
}

func ifinfomsg(index uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}

// newLink makes eth0.
func newLink(kind string) netlink.Message {
	return message(unix.RTM_NEWLINK, netlink.Create|netlink.Excl, ifinfomsg(ethIndex),
		func(a *netlink.AttributeEncoder) {
			a.String(unix.IFLA_IFNAME, "eth0")
			a.Nested(unix.IFLA_LINKINFO, func(a *netlink.AttributeEncoder) error {
				a.String(unix.IFLA_INFO_KIND, kind)
				return nil
			})
		})
}

// withoutLinkLocal keeps the kernel from giving eth0 an IPv6 address of its
// own and announcing it. Not part of newLink: a link has IPv6 settings only
// once it exists. Without IPv6 it fails, and is not needed.
func withoutLinkLocal() netlink.Message {
	return message(unix.RTM_NEWLINK, 0, ifinfomsg(ethIndex), func(a *netlink.AttributeEncoder) {
		a.Nested(unix.IFLA_AF_SPEC, func(a *netlink.AttributeEncoder) error {
			a.Nested(unix.AF_INET6, func(a *netlink.AttributeEncoder) error {
				a.Uint8(unix.IFLA_INET6_ADDR_GEN_MODE, addrGenModeNone)
				return nil
			})
			return nil
		})
	})
}

// newAddr is RTM_NEWADDR with a host mask: struct ifaddrmsg.
func newAddr(index uint32, a netip.Addr) netlink.Message {
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[3] = unix.AF_INET, byte(a.BitLen()), unix.RT_SCOPE_UNIVERSE
	binary.NativeEndian.PutUint32(b[4:], index)
	return message(unix.RTM_NEWADDR, netlink.Create|netlink.Excl, b, func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.IFA_LOCAL, a.AsSlice())
		e.Bytes(unix.IFA_ADDRESS, a.AsSlice())
	})
}

// localDefault is "ip route add local default dev lo [src ADDR]": struct rtmsg.
func localDefault(family byte, src netip.Addr) netlink.Message {
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[4], b[5] = family, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC
	b[6], b[7] = unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	return message(unix.RTM_NEWROUTE, netlink.Create|netlink.Excl, b, func(e *netlink.AttributeEncoder) {
		e.Uint32(unix.RTA_OIF, loIndex)
		if src.IsValid() {
			e.Bytes(unix.RTA_PREFSRC, src.AsSlice())
		}
	})
}

func message(kind uint16, flags netlink.HeaderFlags, head []byte, attrs func(*netlink.AttributeEncoder)) netlink.Message {
	m := netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: flags | netlink.Acknowledge}, Data: head}
	if attrs == nil {
		return m
	}
	e := netlink.NewAttributeEncoder()
	attrs(e)
	b, err := e.Encode()
	if err != nil {
		panic("netns: bug: attributes of constant shape: " + err.Error())
	}
	m.Data = append(m.Data, b...)
	return m
}
