package pod

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"egressd/netns/nft"
)

// tableName is the name of our tables, of family inet and of family netdev.
const tableName = "egressd"

// Two bits of the connection mark. No program inside can set them: only rules set
// a connection mark. Other bits are left to others.
const (
	ownMark     = 0x10000000 // an exempted process began this connection
	inboundMark = 0x20000000 // it began outside
)

const (
	dnsPort = 53

	// beforeOthers orders our redirection before that of Docker's embedded
	// DNS, Istio and others that follow the convention (-100). The kernel
	// applies the first that matches. It refuses -200 and below.
	beforeOthers = -199
	// afterOthers puts the last chain behind every translation of addresses.
	afterOthers = 250
)

// dockerDNS is where Docker's embedded DNS server listens inside containers,
// at a port that any program can find: a way out for data, in queries.
const dockerDNS = "127.0.0.11/32"

// packets is the table that judges packets.
//
// The kernel runs capture, then leave, then, when it knows by which device the
// packet goes, wall. Capture makes leave's judgement right for what it
// redirects; wall trusts neither: a socket bound to a device sends there
// whatever its packets were rewritten to.
func (r Rules) packets() nft.Table {
	return nft.Table{Family: "inet", Name: tableName, Chains: slices.Concat(r.verdicts(), []nft.Chain{
		r.inside(), r.outward(), r.capture(), leave(), wall(), r.arrive(), forward(),
	})}
}

// verdicts are the chains that end a packet's way.
func (r Rules) verdicts() []nft.Chain {
	return []nft.Chain{
		{Name: "refuse", Rules: []nft.Rule{
			// Not rejected: what conntrack calls invalid may belong to a
			// captured connection, which a reset would end.
			{nft.State("invalid"), nft.Drop()},
			{nft.L4Proto("tcp"), nft.Reset()},
			{nft.Reject()},
		}},
		{Name: "own", Rules: []nft.Rule{
			{nft.Direction("original"), nft.SetConnMark(ownMark)},
			{nft.Accept()},
		}},
		// Threat: a raw socket injects packets into egressd's connections ->
		// packets that have an owner, which is not egressd here, are refused.
		// Those without one are the kernel's: acknowledgements and resets for
		// sockets that are closed.
		{Name: "guarded", Rules: []nft.Rule{
			{owned(), nft.Goto("refuse")},
			{nft.Direction("original"), nft.ConnMark(ownMark), nft.Accept()},
			{nft.Drop()},
		}},
	}
}

// exempt gives verdict to the packets that may leave, one rule for each user.
func (r Rules) exempt(verdict nft.Part) []nft.Rule {
	if r.Mark != 0 {
		return []nft.Rule{{nft.Meta("mark", r.Mark), verdict}}
	}
	rules := make([]nft.Rule, len(r.Users))
	for i, id := range r.Users {
		rules[i] = nft.Rule{nft.Meta("skuid", id), verdict}
	}
	return rules
}

// inside judges what goes to 127/8 and ::1: programs reach each other and the
// doors, but not what is egressd's alone.
func (r Rules) inside() nft.Chain {
	rules := r.exempt(nft.Goto("own"))
	for _, port := range r.Protected {
		rules = append(rules, nft.Rule{nft.DPort("th", port), nft.Goto("guarded")})
	}
	rules = append(rules, nft.Rule{nft.To(dockerDNS), nft.Goto("guarded")})
	if r.DNSPort == 0 {
		rules = append(rules, []nft.Rule{
			{nft.DPort("udp", dnsPort), nft.Goto("refuse")},
			{nft.DPort("tcp", dnsPort), nft.Goto("refuse")},
		}...)
	}
	return nft.Chain{Name: "inside", Rules: append(rules, nft.Rule{nft.Accept()})}
}

// outward accepts what may leave by a device, and returns for the rest.
func (r Rules) outward() nft.Chain {
	rules := slices.Concat(r.exempt(nft.Goto("own")), []nft.Rule{
		// Threat: a program makes a connection look as if it came from
		// outside, to send in its replies -> only connections that arrived by
		// a device carry the mark.
		{nft.Direction("reply"), nft.ConnMark(inboundMark), nft.Accept()},
		{owned(), nft.Return()},
		{nft.Direction("original"), nft.ConnMark(ownMark), nft.Accept()},
		{nft.ICMP("icmpv6", "nd-router-solicit"), nft.Accept()},
		{nft.ICMP("icmpv6", "nd-neighbor-solicit"), nft.Accept()},
		{nft.ICMP("icmpv6", "nd-neighbor-advert"), nft.Accept()},
	})
	// Threat: a program joins multicast groups whose addresses are data, and
	// the kernel reports them to the network -> only reports about groups that
	// the kernel itself needs (solicited nodes, RFC 4291 section 2.7.1). Left
	// over: 24 bits a group, heard on the same link alone.
	for n := 1; n <= maxRecords; n++ {
		report := slices.Concat(nft.Rule{nft.ICMP("icmpv6", "mld2-listener-report")}, solicitedNodes(n))
		rules = append(rules, append(report, nft.Accept()))
	}
	return nft.Chain{Name: "outward", Rules: rules}
}

// capture redirects. What it leaves alone is judged by leave.
func (r Rules) capture() nft.Chain {
	dns := nft.Accept()
	if r.DNSPort != 0 {
		dns = nft.Redirect(r.DNSPort)
	}
	rules := slices.Concat(r.exempt(nft.Accept()), []nft.Rule{
		// First, also to 127/8: whatever resolv.conf says is captured.
		{nft.DPort("udp", dnsPort), dns},
		{nft.DPort("tcp", dnsPort), dns},
		{nft.To("127.0.0.0/8"), nft.Accept()},
		{nft.To("::1/128"), nft.Accept()},
		// Refused by leave, as redirecting these would not bring them home.
		{nft.To("224.0.0.0/4"), nft.Accept()},
		{nft.To("255.255.255.255/32"), nft.Accept()},
		{nft.To("fe80::/10"), nft.Accept()},
		{nft.To("ff00::/8"), nft.Accept()},
		{nft.L4Proto("tcp"), nft.Redirect(r.TransparentPort)},
		// Nothing listens there for UDP, so the sender sees at once that the
		// connection is refused, as by a host without QUIC. A reject would
		// make sendto fail with EPERM, which event loops take for a fatal
		// error.
		{nft.L4Proto("udp"), nft.Redirect(r.TransparentPort)},
	})
	return nft.Chain{
		Name: "capture", Rules: rules,
		Base: &nft.Base{Type: "nat", Hook: "output", Priority: beforeOthers, Accept: true},
	}
}

func leave() nft.Chain {
	return nft.Chain{Name: "leave", Base: &nft.Base{Type: "filter", Hook: "output"}, Rules: []nft.Rule{
		{nft.To("127.0.0.0/8"), nft.Goto("inside")},
		{nft.To("::1/128"), nft.Goto("inside")},
		{nft.Jump("outward")},
		{nft.Loopback("oif"), nft.Direction("reply"), nft.Accept()},
		{owned(), nft.Goto("refuse")},
		{nft.Loopback("oif"), nft.Accept()}, // the kernel's own errors, to programs inside
		{nft.Goto("refuse")},
	}}
}

// wall judges a last time, when the device is known.
func wall() nft.Chain {
	return nft.Chain{Name: "wall", Base: &nft.Base{Type: "filter", Hook: "postrouting", Priority: afterOthers}, Rules: []nft.Rule{
		{nft.Loopback("oif"), nft.Accept()},
		{nft.Jump("outward")},
	}}
}

// arrive marks what begins outside. It restricts nothing but the doors that
// are for captured traffic.
func (r Rules) arrive() nft.Chain {
	rules := []nft.Rule{
		{nft.Loopback("iif"), nft.Accept()},
		{nft.State("established,related"), nft.Accept()},
		{nft.DPort("th", r.TransparentPort), nft.Drop()},
	}
	if r.DNSPort != 0 {
		rules = append(rules, nft.Rule{nft.DPort("th", r.DNSPort), nft.Drop()})
	}
	rules = append(rules, []nft.Rule{
		// Threat: a connection from before the capture lives on, because
		// conntrack first sees the other side's packet and takes it for a
		// connection from outside -> TCP begins with SYN.
		{nft.State("new"), nft.SYN(), nft.SetConnMark(inboundMark)},
		{nft.State("new"), nft.Not(nft.L4Proto("tcp")), nft.SetConnMark(inboundMark)},
	}...)
	return nft.Chain{Name: "arrive", Base: &nft.Base{Type: "filter", Hook: "input", Accept: true}, Rules: rules}
}

// forward drops what containers within the pod, and other namespaces, would
// send through this one.
func forward() nft.Chain {
	return nft.Chain{Name: "forward", Base: &nft.Base{Type: "filter", Hook: "forward"}}
}

// owned matches packets that have a socket with an open descriptor.
func owned() nft.Part { return nft.Not(nft.Meta("skuid", noID)) }

// maxRecords bounds the groups in one report: an interface has a solicited
// node for each of its addresses, and those of one interface often share it.
const maxRecords = 3

// solicitedNodes matches a report (RFC 3810 section 5.2) with n records, each
// without sources or extra data, about groups in ff02::1:ff00:0/104.
func solicitedNodes(n int) []nft.Part {
	const header, record = 8, 20
	parts := []nft.Part{nft.Payload(6, binary.BigEndian.AppendUint16(nil, uint16(n)))}
	group := netip.MustParseAddr("ff02::1:ff00:0").As16()
	want := append([]byte{0, 0, 0}, group[:13]...) // length of extra data, number of sources, group
	for i := range n {
		parts = append(parts, nft.Payload(uint32(header+i*record+1), want))
	}
	return parts
}

// frames is the table that sees every frame, also those of packet sockets and
// of protocols that are not IP.
//
// Threat: a program with CAP_NET_RAW sends Ethernet frames past every rule
// about packets -> what the IP stack sends has a route, which nothing else
// has. Left over: AF_XDP sockets, which need CAP_NET_RAW too and bypass this
// hook.
func frames(devices []string) nft.Table {
	return nft.Table{Family: "netdev", Name: tableName, Chains: []nft.Chain{{
		Name: "frames",
		Base: &nft.Base{Type: "filter", Hook: "egress", Devices: devices},
		Rules: []nft.Rule{
			// Only what the IP stack sends has a route, and with it a class
			// (zero, usually).
			{nft.Not(nft.Meta("rtclassid", noID)), nft.Accept()},
			{owned(), nft.Drop()},
			{nft.ARP(), nft.Accept()}, // the kernel's
		},
	}}}
}
