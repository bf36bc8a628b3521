package pod

import (
	"fmt"
	"net/netip"
	"strings"
)

// part is a piece of a rule: as nft writes it, and as the kernel takes it.
type part struct {
	text  string
	exprs []expr
}

// rule is one line.
type rule []part

func line(parts ...part) rule { return parts }

func (r rule) String() string {
	words := make([]string, len(r))
	for i, p := range r {
		words[i] = p.text
	}
	return strings.Join(words, " ")
}

func (r rule) exprs() []expr {
	var all []expr
	for _, p := range r {
		all = append(all, p.exprs...)
	}
	return all
}

// Protocol numbers (IANA) and the states of connections, linux/netfilter.
const (
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58

	stateInvalid     = 1
	stateEstablished = 2
	stateRelated     = 4
	stateNew         = 8
)

func protocol(name string) byte {
	switch name {
	case "tcp":
		return protoTCP
	case "udp":
		return protoUDP
	default:
		panic("pod: bug: protocol " + name)
	}
}

func l4proto(name string) part {
	return part{"meta l4proto " + name, []expr{meta(metaL4Proto), cmp(equal, []byte{protocol(name)})}}
}

func notTCP() part {
	return part{"meta l4proto != tcp", []expr{meta(metaL4Proto), cmp(unequal, []byte{protoTCP})}}
}

func dport(proto string, port uint16) part {
	p := l4proto(proto)
	return part{fmt.Sprintf("%s dport %d", proto, port), append(p.exprs, transport(2, 2), cmp(equal, big16(port)))}
}

// portOfAny matches the destination port of every protocol that has one: they
// all keep it in the same place.
func portOfAny(port uint16) part {
	return part{fmt.Sprintf("th dport %d", port), []expr{transport(2, 2), cmp(equal, big16(port))}}
}

// onlySYN matches the first segment of a TCP connection (RFC 9293 section 3.1).
func onlySYN() part {
	const fin, syn, rst, ack = 1, 2, 4, 16
	p := l4proto("tcp")
	return part{"tcp flags syn / fin,syn,rst,ack", append(p.exprs,
		transport(13, 1), masked([]byte{fin | syn | rst | ack}, []byte{0}), cmp(equal, []byte{syn}))}
}

// to4 matches the destination of IPv4 packets (RFC 791 section 3.1).
func to4(prefix string) part { return to("ip", protoFamilyIPv4, 16, prefix) }

// to6 matches the destination of IPv6 packets (RFC 8200 section 3).
func to6(prefix string) part { return to("ip6", protoFamilyIPv6, 24, prefix) }

func to(keyword string, family byte, offset uint32, prefix string) part {
	p := netip.MustParsePrefix(prefix)
	addr := p.Masked().Addr().AsSlice()
	exprs := []expr{meta(metaNFProto), cmp(equal, []byte{family})}
	if p.Bits()%8 == 0 { // as nft does, so that either recognises the other's rules
		addr = addr[:p.Bits()/8]
		exprs = append(exprs, network(offset, uint32(len(addr))))
	} else {
		mask := make([]byte, len(addr))
		for i := range p.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		exprs = append(exprs, network(offset, uint32(len(addr))), masked(mask, make([]byte, len(addr))))
	}
	if p.IsSingleIP() {
		prefix = p.Addr().String()
	}
	return part{keyword + " daddr " + prefix, append(exprs, cmp(equal, addr))}
}

// icmp6 matches a type of ICMPv6 message by nft's name for it.
func icmp6(name string) part {
	kinds := map[string]byte{
		"nd-router-solicit": 133, "nd-neighbor-solicit": 135, "nd-neighbor-advert": 136, // RFC 4861 section 4
		"mld2-listener-report": 143, // RFC 3810 section 5.2
	}
	return part{"icmpv6 type " + name, []expr{
		meta(metaNFProto), cmp(equal, []byte{protoFamilyIPv6}),
		meta(metaL4Proto), cmp(equal, []byte{protoICMPv6}),
		transport(0, 1), cmp(equal, []byte{kinds[name]}),
	}}
}

// maxRecords bounds the groups in one report: an interface has a solicited
// node for each of its addresses, and those of one interface often share it.
const maxRecords = 3

// solicitedNodes matches a report (RFC 3810 section 5.2) with n records, each
// without sources or extra data, about groups in ff02::1:ff00:0/104.
func solicitedNodes(n int) part {
	const header, record = 8, 20
	texts := []string{fmt.Sprintf("@th,48,16 0x%x", n)}
	exprs := []expr{transport(6, 2), cmp(equal, big16(uint16(n)))}
	group := netip.MustParseAddr("ff02::1:ff00:0").As16()
	want := append([]byte{0, 0, 0}, group[:13]...) // length of extra data, number of sources, group
	for i := range n {
		at := uint32(header + i*record + 1)
		texts = append(texts, fmt.Sprintf("@th,%d,128 0x%x", at*8, group[:13]))
		exprs = append(exprs, transport(at, 16), cmp(equal, want))
	}
	return part{strings.Join(texts, " "), exprs}
}

// user matches packets whose socket was opened by a process of that user.
func user(id uint32) part {
	return part{fmt.Sprintf("meta skuid %d", id), []expr{meta(metaSKUID), cmp(equal, native32(id))}}
}

// owned matches packets that have a socket with an open descriptor.
func owned() part {
	return part{fmt.Sprintf("meta skuid != %d", uint32(noID)), []expr{meta(metaSKUID), cmp(unequal, native32(noID))}}
}

func packetMark(mark uint32) part {
	return part{fmt.Sprintf("meta mark 0x%08x", mark), []expr{meta(metaMark), cmp(equal, native32(mark))}}
}

func outLoopback() part {
	return part{`oif "lo"`, []expr{meta(metaOIF), cmp(equal, native32(loIndex))}}
}

func inLoopback() part {
	return part{`iif "lo"`, []expr{meta(metaIIF), cmp(equal, native32(loIndex))}}
}

// routed matches what the IP stack sends: only that has a route, and with it a
// class (zero, usually).
func routed() part {
	return part{fmt.Sprintf("meta rtclassid != %d", uint32(noID)), []expr{meta(metaRTClassID), cmp(unequal, native32(noID))}}
}

func arp() part {
	const etherARP = 0x0806
	return part{"meta protocol arp", []expr{meta(metaProtocol), cmp(equal, big16(etherARP))}}
}

func original() part {
	return part{"ct direction original", []expr{connection(ctDirection), cmp(equal, []byte{0})}}
}

func reply() part {
	return part{"ct direction reply", []expr{connection(ctDirection), cmp(equal, []byte{1})}}
}

func state(name string, bits uint32) part {
	return part{"ct state " + name, []expr{
		connection(ctState), masked(native32(bits), native32(0)), cmp(unequal, native32(0)),
	}}
}

func marked(bit uint32) part {
	return part{fmt.Sprintf("ct mark & 0x%08x == 0x%08x", bit, bit), []expr{
		connection(ctMark), masked(native32(bit), native32(0)), cmp(equal, native32(bit)),
	}}
}

// setMark sets one bit of the connection's mark.
func setMark(bit uint32) part {
	return part{fmt.Sprintf("ct mark set ct mark | 0x%08x", bit), []expr{
		connection(ctMark), masked(native32(^bit), native32(bit)), setConnection(ctMark),
	}}
}

func accept() part  { return part{"accept", []expr{verdict(verdictAccept, "")}} }
func drop() part    { return part{"drop", []expr{verdict(verdictDrop, "")}} }
func returns() part { return part{"return", []expr{verdict(verdictReturn, "")}} }

// goTo goes to a chain that ends every packet.
func goTo(chain string) part { return part{"goto " + chain, []expr{verdict(verdictGoto, chain)}} }

// jump goes to a chain and comes back.
func jump(chain string) part { return part{"jump " + chain, []expr{verdict(verdictJump, chain)}} }

// redirect sends the connection to port on 127.0.0.1 or ::1.
func redirect(port uint16) part {
	return part{fmt.Sprintf("redirect to :%d", port), []expr{immediate(big16(port)), redirectToRegister()}}
}

// reject answers with ICMP's or ICMPv6's port unreachable.
func reject() part { return part{"reject", []expr{rejection(rejectICMPX, icmpxPort)}} }

func rejectTCP() part { return part{"reject with tcp reset", []expr{rejection(rejectReset, 0)}} }
