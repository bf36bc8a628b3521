package pod

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// Messages that build the pods of the tests.

func rtnl(t testing.TB, messages ...netlink.Message) {
	t.Helper()
	c, err := netlink.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range messages {
		m.Flags |= unix.NLM_F_ACK
		if err := netlink.First(c.Send([]netlink.Message{m})); err != nil {
			t.Fatal(err)
		}
	}
}

// addVeth makes name here and peer in the namespace ns.
func addVeth(name, peer string, ns *os.File) netlink.Message {
	const infoData, infoPeer = 2, 1 // IFLA_INFO_DATA, VETH_INFO_PEER
	other := slices.Concat(make([]byte, unix.SizeofIfInfomsg), netlink.Append(nil,
		netlink.Text(unix.IFLA_IFNAME, peer),
		netlink.Native(unix.IFLA_NET_NS_FD, uint32(ns.Fd())),
	))
	return netlink.Message{
		Kind: unix.RTM_NEWLINK, Flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, About: "add " + name,
		Body: netlink.Append(make([]byte, unix.SizeofIfInfomsg),
			netlink.Text(unix.IFLA_IFNAME, name),
			netlink.Nest(unix.IFLA_LINKINFO,
				netlink.Text(unix.IFLA_INFO_KIND, "veth"),
				netlink.Nest(infoData, netlink.Attr{Kind: infoPeer, Data: other})),
		),
	}
}

func setUp(index uint32) netlink.Message {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	return netlink.Message{Kind: unix.RTM_NEWLINK, Body: b, About: "set up"}
}

func familyOf(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func addAddr(index uint32, prefix string) netlink.Message {
	p := netip.MustParsePrefix(prefix)
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[2] = familyOf(p.Addr()), byte(p.Bits()), unix.IFA_F_NODAD
	binary.NativeEndian.PutUint32(b[4:], index)
	attrs := []netlink.Attr{
		{Kind: unix.IFA_LOCAL, Data: p.Addr().AsSlice()},
		{Kind: unix.IFA_ADDRESS, Data: p.Addr().AsSlice()},
	}
	if p.Addr().Is4() && p.Bits() < 31 {
		last := p.Masked().Addr().As4()
		for i := p.Bits(); i < 32; i++ {
			last[i/8] |= 0x80 >> (i % 8)
		}
		attrs = append(attrs, netlink.Attr{Kind: unix.IFA_BROADCAST, Data: last[:]})
	}
	return netlink.Message{Kind: unix.RTM_NEWADDR, Flags: unix.NLM_F_CREATE, Body: netlink.Append(b, attrs...), About: "add " + prefix}
}

func defaultVia(gateway string) netlink.Message {
	g := netip.MustParseAddr(gateway)
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[4], b[5], b[6], b[7] = familyOf(g), unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST
	return netlink.Message{
		Kind: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE, About: "route via " + gateway,
		Body: netlink.Append(b, netlink.Attr{Kind: unix.RTA_GATEWAY, Data: g.AsSlice()}),
	}
}

// localRoute makes every address of a prefix one of this namespace's.
func localRoute(prefix string) netlink.Message {
	p := netip.MustParsePrefix(prefix)
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[1], b[4], b[5] = familyOf(p.Addr()), byte(p.Bits()), unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC
	b[6], b[7] = unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	b = netlink.Append(b, netlink.Native(unix.RTA_OIF, loIndex))
	if p.Bits() > 0 {
		b = netlink.Append(b, netlink.Attr{Kind: unix.RTA_DST, Data: p.Addr().AsSlice()})
	}
	return netlink.Message{Kind: unix.RTM_NEWROUTE, Flags: unix.NLM_F_CREATE, About: "add local " + prefix, Body: b}
}

func deviceIndex(t testing.TB, name string) uint32 {
	t.Helper()
	all, err := devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if d.name == name {
			return d.index
		}
	}
	t.Fatalf("no device %s among %v", name, all)
	return 0
}

// sysctl sets a setting of the thread's namespace.
func sysctl(t testing.TB, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}
