package pod

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Messages that build the pods of the tests.

func rtnl(t testing.TB, messages ...message) {
	t.Helper()
	c, err := dial(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, m := range messages {
		m.flags |= unix.NLM_F_ACK
		if err := c.send([]message{m}); err != nil {
			t.Fatal(err)
		}
	}
}

// addVeth makes name here and peer in the namespace ns.
func addVeth(name, peer string, ns *os.File) message {
	const infoData, infoPeer = 2, 1 // IFLA_INFO_DATA, VETH_INFO_PEER
	other := slices.Concat(make([]byte, unix.SizeofIfInfomsg), encodeAll(nil, []attr{
		text(unix.IFLA_IFNAME, peer),
		number32(unix.IFLA_NET_NS_FD, uint32(ns.Fd())),
	}))
	return message{
		kind: unix.RTM_NEWLINK, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, about: "add " + name,
		body: encodeAll(make([]byte, unix.SizeofIfInfomsg), []attr{
			text(unix.IFLA_IFNAME, name),
			nest(unix.IFLA_LINKINFO,
				text(unix.IFLA_INFO_KIND, "veth"),
				nest(infoData, attr{kind: infoPeer, data: other})),
		}),
	}
}

func setUp(index uint32) message {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], index)
	binary.NativeEndian.PutUint32(b[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(b[12:], unix.IFF_UP)
	return message{kind: unix.RTM_NEWLINK, body: b, about: "set up"}
}

func familyOf(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func addAddr(index uint32, prefix string) message {
	p := netip.MustParsePrefix(prefix)
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[2] = familyOf(p.Addr()), byte(p.Bits()), unix.IFA_F_NODAD
	binary.NativeEndian.PutUint32(b[4:], index)
	attrs := []attr{
		{kind: unix.IFA_LOCAL, data: p.Addr().AsSlice()},
		{kind: unix.IFA_ADDRESS, data: p.Addr().AsSlice()},
	}
	if p.Addr().Is4() && p.Bits() < 31 {
		last := p.Masked().Addr().As4()
		for i := p.Bits(); i < 32; i++ {
			last[i/8] |= 0x80 >> (i % 8)
		}
		attrs = append(attrs, attr{kind: unix.IFA_BROADCAST, data: last[:]})
	}
	return message{kind: unix.RTM_NEWADDR, flags: unix.NLM_F_CREATE, body: encodeAll(b, attrs), about: "add " + prefix}
}

func defaultVia(gateway string) message {
	g := netip.MustParseAddr(gateway)
	b := make([]byte, unix.SizeofRtMsg)
	b[0], b[4], b[5], b[6], b[7] = familyOf(g), unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_UNIVERSE, unix.RTN_UNICAST
	return message{
		kind: unix.RTM_NEWROUTE, flags: unix.NLM_F_CREATE, about: "route via " + gateway,
		body: encodeAll(b, []attr{{kind: unix.RTA_GATEWAY, data: g.AsSlice()}}),
	}
}

// localRoute makes every address of a prefix one of this namespace's.
func localRoute(prefix string) message {
	p := netip.MustParsePrefix(prefix)
	m := localDefault(familyOf(p.Addr()))
	m.kind, m.flags, m.about = unix.RTM_NEWROUTE, unix.NLM_F_CREATE, "add local "+prefix
	m.body[1], m.body[5] = byte(p.Bits()), unix.RTPROT_STATIC
	if p.Bits() > 0 {
		m.body = attr{kind: unix.RTA_DST, data: p.Addr().AsSlice()}.encode(m.body)
	}
	return m
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
