package pod

import (
	"slices"
)

// tableName is the name of our tables, of family inet and of family netdev.
const tableName = "egressd"

// Two bits of the connection mark. Nobody inside can set them: a connection
// mark is set by rules alone. Other bits are left to others.
const (
	ownMark     = 0x10000000 // the exempted began this connection
	inboundMark = 0x20000000 // somebody outside did
)

const (
	dnsPort = 53

	// beforeOthers orders our redirection before that of Docker's embedded
	// DNS, Istio and everybody who follows the convention (-100). The kernel
	// takes the first that applies. It refuses -200 and below.
	beforeOthers = -199
	// afterOthers puts the last wall behind every translation of addresses.
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
func (r Rules) packets() table {
	return table{family: familyInet, chains: slices.Concat(r.verdicts(), []chain{
		r.inside(), r.outward(), r.capture(), leave(), wall(), r.arrive(), forward(),
	})}
}

// verdicts are the chains that end a packet's way.
func (r Rules) verdicts() []chain {
	return []chain{
		{name: "refuse", rules: []rule{
			// Not rejected: what conntrack calls invalid may belong to a
			// captured connection, which a reset would end.
			line(state("invalid", stateInvalid), drop()),
			line(l4proto("tcp"), rejectTCP()),
			line(reject()),
		}},
		{name: "own", rules: []rule{
			line(original(), setMark(ownMark)),
			line(accept()),
		}},
		// Threat: a raw socket injects packets into egressd's connections ->
		// packets with an owner, who is not egressd here, are refused. What
		// has none is the kernel's: acknowledgements and resets for sockets
		// that are closed.
		{name: "guarded", rules: []rule{
			line(owned(), goTo("refuse")),
			line(original(), marked(ownMark), accept()),
			line(drop()),
		}},
	}
}

// exempt is who may leave, one rule each.
func (r Rules) exempt(verdict part) []rule {
	if r.Mark != 0 {
		return []rule{line(packetMark(r.Mark), verdict)}
	}
	rules := make([]rule, len(r.Users))
	for i, id := range r.Users {
		rules[i] = line(user(id), verdict)
	}
	return rules
}

// inside judges what goes to 127/8 and ::1: programs reach each other and the
// doors, but not what is egressd's alone.
func (r Rules) inside() chain {
	rules := r.exempt(goTo("own"))
	for _, port := range r.Protected {
		rules = append(rules, line(portOfAny(port), goTo("guarded")))
	}
	rules = append(rules, line(to4(dockerDNS), goTo("guarded")))
	if r.DNSPort == 0 {
		rules = append(rules,
			line(dport("udp", dnsPort), goTo("refuse")),
			line(dport("tcp", dnsPort), goTo("refuse")))
	}
	return chain{name: "inside", rules: append(rules, line(accept()))}
}

// outward accepts what may leave by a device, and returns for the rest.
func (r Rules) outward() chain {
	rules := r.exempt(goTo("own"))
	rules = append(rules,
		// Threat: a program makes a connection look as if it came from
		// outside, to send in its replies -> only connections that arrived by
		// a device carry the mark.
		line(reply(), marked(inboundMark), accept()),
		line(owned(), returns()),
		line(original(), marked(ownMark), accept()),
		line(icmp6("nd-router-solicit"), accept()),
		line(icmp6("nd-neighbor-solicit"), accept()),
		line(icmp6("nd-neighbor-advert"), accept()),
	)
	// Threat: a program joins multicast groups whose addresses are data, and
	// the kernel reports them to the network -> only reports about groups that
	// the kernel itself needs (solicited nodes, RFC 4291 section 2.7.1). Left
	// over: 24 bits a group, heard on the same link alone.
	for n := 1; n <= maxRecords; n++ {
		rules = append(rules, line(icmp6("mld2-listener-report"), solicitedNodes(n), accept()))
	}
	return chain{name: "outward", rules: rules}
}

// capture redirects. What it leaves alone is judged by leave.
func (r Rules) capture() chain {
	rules := r.exempt(accept())
	dns := func(proto string) rule {
		if r.DNSPort == 0 {
			return line(dport(proto, dnsPort), accept())
		}
		return line(dport(proto, dnsPort), redirect(r.DNSPort))
	}
	rules = append(rules,
		dns("udp"), dns("tcp"), // first, also to 127/8: whatever resolv.conf says is captured
		line(to4("127.0.0.0/8"), accept()),
		line(to6("::1/128"), accept()),
		// Refused by leave, as redirecting these would not bring them home.
		line(to4("224.0.0.0/4"), accept()),
		line(to4("255.255.255.255/32"), accept()),
		line(to6("fe80::/10"), accept()),
		line(to6("ff00::/8"), accept()),
		line(l4proto("tcp"), redirect(r.TransparentPort)),
		// Nobody listens there for UDP, so the sender is told at once that
		// the connection is refused, as by a host without QUIC. A reject
		// would make sendto fail with EPERM, which event loops take for a
		// fatal error.
		line(l4proto("udp"), redirect(r.TransparentPort)),
	)
	return chain{name: "capture", base: &base{kind: "nat", hook: hookOutput, priority: beforeOthers, accept: true}, rules: rules}
}

func leave() chain {
	return chain{name: "leave", base: &base{kind: "filter", hook: hookOutput}, rules: []rule{
		line(to4("127.0.0.0/8"), goTo("inside")),
		line(to6("::1/128"), goTo("inside")),
		line(jump("outward")),
		line(outLoopback(), reply(), accept()),
		line(owned(), goTo("refuse")),
		line(outLoopback(), accept()), // the kernel's own errors, to programs inside
		line(goTo("refuse")),
	}}
}

// wall is the last look, when the device is known.
func wall() chain {
	return chain{name: "wall", base: &base{kind: "filter", hook: hookPostrouting, priority: afterOthers}, rules: []rule{
		line(outLoopback(), accept()),
		line(jump("outward")),
	}}
}

// arrive marks what begins outside. It restricts nothing but the doors that
// are for captured traffic.
func (r Rules) arrive() chain {
	rules := []rule{
		line(inLoopback(), accept()),
		line(state("established,related", stateEstablished|stateRelated), accept()),
		line(portOfAny(r.TransparentPort), drop()),
	}
	if r.DNSPort != 0 {
		rules = append(rules, line(portOfAny(r.DNSPort), drop()))
	}
	rules = append(rules,
		// Threat: a connection from before the capture lives on, because
		// conntrack first sees the other side's packet and takes it for a
		// connection from outside -> TCP begins with SYN.
		line(state("new", stateNew), onlySYN(), setMark(inboundMark)),
		line(state("new", stateNew), notTCP(), setMark(inboundMark)),
	)
	return chain{name: "arrive", base: &base{kind: "filter", hook: hookInput, accept: true}, rules: rules}
}

// forward drops what containers within the pod, and other namespaces, would
// send through this one.
func forward() chain {
	return chain{name: "forward", base: &base{kind: "filter", hook: hookForward}}
}

// frames is the table that sees every frame, also those of packet sockets and
// of protocols that are not IP.
//
// Threat: a program with CAP_NET_RAW sends Ethernet frames past every rule
// about packets -> what the IP stack sends has a route, which nothing else
// has. Left over: AF_XDP sockets, which need CAP_NET_RAW too and bypass this
// hook.
func frames(devices []string) table {
	return table{family: familyNetdev, chains: []chain{{
		name: "frames",
		base: &base{kind: "filter", hook: hookEgress, devices: devices},
		rules: []rule{
			line(routed(), accept()),
			line(owned(), drop()),
			line(arp(), accept()), // the kernel's
		},
	}}}
}
