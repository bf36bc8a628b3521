package capture

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
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

// OwnAddr is the non-loopback address inside (TEST-NET-1, RFC 5737: no policy has
// a use for it). Without one getaddrinfo with AI_ADDRCONFIG finds no address
// family. It is also the source address of connections.
const OwnAddr = "192.0.2.1"

func ownAddr() []byte { return []byte{192, 0, 2, 1} }

// Linked is a namespace without a way out that is not captured yet.
type Linked struct {
	IPv6  bool // the kernel has IPv6
	Dummy bool // an eth0 that is up exists
}

// Link gives the calling thread's network namespace its devices and routes. It
// needs CAP_NET_ADMIN over that namespace, and is meant for a namespace that was
// made for this: it is called once, before anything else runs there. The caller
// has locked the thread, or every thread is in the namespace.
func Link() (*Linked, error) { return LinkKind(linkKind) }

// LinkKind is Link with another kind of device for eth0.
//
// It brings lo up and makes every address local to it (AnyIP): what is sent
// anywhere arrives here, and nothing can be routed out.
//
// An eth0 of that kind, which leads nowhere, is for programs that consider a
// machine with nothing but lo offline. Not every kernel has the device.
func LinkKind(kind string) (*Linked, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.Close()
	up, err := c.Send([]netlink.Message{linkUp(loIndex), newLink(kind), withoutLinkLocal(), linkUp(ethIndex)})
	if err := netlink.First(up[:min(1, len(up))], err); err != nil {
		return nil, fmt.Errorf("bring lo up: %w", err)
	}
	l := &Linked{Dummy: up[1] == nil && up[3] == nil}
	home := uint32(loIndex)
	if l.Dummy {
		home = ethIndex
	}
	done, err := c.Send([]netlink.Message{
		newAddr(home),
		newRoute(unix.AF_INET, ownAddr()),
		newRoute(unix.AF_INET6, nil),
	})
	if err := netlink.First(done[:min(2, len(done))], err); err != nil {
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
func linkUp(index uint32) netlink.Message {
	b := ifinfomsg(index)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	return netlink.Message{Kind: unix.RTM_NEWLINK, Flags: unix.NLM_F_ACK, Body: b}
}

func ifinfomsg(index uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}

// newFlags ask for something that does not exist yet.
const newFlags = unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL

// newLink makes eth0.
func newLink(kind string) netlink.Message {
	return netlink.Message{Kind: unix.RTM_NEWLINK, Flags: newFlags, Body: netlink.Append(ifinfomsg(ethIndex),
		netlink.Text(unix.IFLA_IFNAME, "eth0"),
		netlink.Nest(unix.IFLA_LINKINFO, netlink.Text(unix.IFLA_INFO_KIND, kind)),
	)}
}

// withoutLinkLocal keeps the kernel from giving eth0 an IPv6 address of its
// own and announcing it. It is not part of newLink: a link has IPv6 settings
// only once it exists. Without IPv6 it fails, and is not needed.
func withoutLinkLocal() netlink.Message {
	mode := netlink.Attr{Kind: unix.IFLA_INET6_ADDR_GEN_MODE, Data: []byte{addrGenModeNone}}
	return netlink.Message{Kind: unix.RTM_NEWLINK, Flags: unix.NLM_F_ACK, Body: netlink.Append(ifinfomsg(ethIndex),
		netlink.Nest(unix.IFLA_AF_SPEC, netlink.Nest(unix.AF_INET6, mode)),
	)}
}

// newAddr adds ownAddr with a host mask.
func newAddr(index uint32) netlink.Message {
	return netlink.Message{Kind: unix.RTM_NEWADDR, Flags: newFlags, Body: netlink.Append(ifaddrmsg(index),
		netlink.Attr{Kind: unix.IFA_LOCAL, Data: ownAddr()},
		netlink.Attr{Kind: unix.IFA_ADDRESS, Data: ownAddr()},
	)}
}

// ifaddrmsg is struct ifaddrmsg of an IPv4 address with a host mask.
func ifaddrmsg(index uint32) []byte {
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[3] = unix.AF_INET, 32, unix.RT_SCOPE_UNIVERSE
	binary.NativeEndian.PutUint32(b[4:], index)
	return b
}

// newRoute is "ip route add local default dev lo [src ADDR]".
func newRoute(family byte, src []byte) netlink.Message {
	b := localDefault(family)
	if src != nil {
		b = netlink.Append(b, netlink.Attr{Kind: unix.RTA_PREFSRC, Data: src})
	}
	return netlink.Message{Kind: unix.RTM_NEWROUTE, Flags: newFlags, Body: b}
}

// localDefault is the route by which every address is local: struct rtmsg.
func localDefault(family byte) []byte {
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[4], b[5] = family, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC
	b[6], b[7] = unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	return netlink.Append(b, netlink.Native(unix.RTA_OIF, loIndex))
}
