package nft

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"egressd/netns/netlink"
)

// Not matches what p, a condition on one value, does not.
func Not(p Part) Part {
	last := p.exprs[len(p.exprs)-1]
	if last.name != "cmp" || last.attrs[1].Data[3] != equal {
		panic("nft: bug: nothing to negate in " + p.String())
	}
	flipped := expr{"cmp", []netlink.Attr{last.attrs[0], netlink.Number(2, unequal), last.attrs[2]}}
	exprs := append(p.exprs[:len(p.exprs)-1:len(p.exprs)-1], flipped)
	return Part{p.key, "!= " + p.value, exprs}
}

// L4Proto matches a transport protocol: tcp, udp.
func L4Proto(name string) Part {
	return Part{"meta l4proto", name, []expr{meta(metaL4Proto), cmp(equal, []byte{lookUp(protocols(), name)})}}
}

// DPort matches a destination port of tcp or udp, or, as th, of every protocol
// with ports: all of them keep it in the same place.
func DPort(proto string, port uint16) Part {
	var exprs []expr
	if proto != "th" {
		exprs = L4Proto(proto).exprs
	}
	return Part{proto + " dport", strconv.Itoa(int(port)), append(exprs, transport(2, 2), cmp(equal, big16(port)))}
}

// SYN matches the first segment of a TCP connection (RFC 9293 section 3.1).
func SYN() Part {
	const fin, syn, rst, ack = 1, 2, 4, 16
	return Part{"tcp flags", "syn / fin,syn,rst,ack", append(L4Proto("tcp").exprs,
		transport(13, 1), masked([]byte{fin | syn | rst | ack}, []byte{0}), cmp(equal, []byte{syn}))}
}

// To matches the destination of IPv4 packets (RFC 791 section 3.1) or of IPv6
// packets (RFC 8200 section 3), whichever family prefix is of.
func To(prefix string) Part {
	p := netip.MustParsePrefix(prefix)
	key, family, offset := "ip daddr", byte(protoFamilyIPv4), uint32(16)
	if p.Addr().Is6() {
		key, family, offset = "ip6 daddr", protoFamilyIPv6, 24
	}
	addr := p.Masked().Addr().AsSlice()
	exprs := []expr{meta(metaNFProto), cmp(equal, []byte{family})}
	if p.Bits()%8 == 0 { // as nft does, so that each recognises the other's rules
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
	return Part{key, prefix, append(exprs, cmp(equal, addr))}
}

// ICMP matches a type of message, by nft's name for it, of icmp or icmpv6.
func ICMP(proto, name string) Part {
	family, kinds := byte(protoFamilyIPv4), map[string]byte{"destination-unreachable": 3} // RFC 792
	if proto == "icmpv6" {
		family, kinds = protoFamilyIPv6, map[string]byte{
			"destination-unreachable": 1,                                                          // RFC 4443 section 3.1
			"nd-router-solicit":       133, "nd-neighbor-solicit": 135, "nd-neighbor-advert": 136, // RFC 4861 section 4
			"mld2-listener-report": 143, // RFC 3810 section 5.2
		}
	}
	return Part{proto + " type", name, []expr{
		meta(metaNFProto), cmp(equal, []byte{family}),
		meta(metaL4Proto), cmp(equal, []byte{lookUp(protocols(), proto)}),
		transport(0, 1), cmp(equal, []byte{lookUp(kinds, name)}),
	}}
}

// Payload matches the bytes want at an offset into the transport header.
func Payload(offset uint32, want []byte) Part {
	digits := strings.TrimLeft(fmt.Sprintf("%x", want), "0")
	return Part{
		fmt.Sprintf("@th,%d,%d", offset*8, len(want)*8), "0x" + digits,
		[]expr{transport(offset, uint32(len(want))), cmp(equal, want)},
	}
}

// Meta matches what the kernel knows of a packet: skuid, the user of its
// socket; mark, its mark; rtclassid, the class of its route.
func Meta(key string, n uint32) Part {
	kind := lookUp(map[string]uint32{"mark": 3, "skuid": 10, "rtclassid": 13}, key) // NFT_META_…
	text := strconv.FormatUint(uint64(n), 10)
	if key == "mark" {
		text = fmt.Sprintf("0x%08x", n)
	}
	return Part{"meta " + key, text, []expr{meta(kind), cmp(equal, native32(n))}}
}

// Loopback matches the device lo: as iif, the one a packet came in by; as oif,
// the one it leaves by; as oifname, the same by its name.
func Loopback(key string) Part {
	const index = 1                                                          // of lo in every network namespace
	kind := lookUp(map[string]uint32{"iif": 4, "oif": 5, "oifname": 7}, key) // NFT_META_…
	want := native32(index)
	if key == "oifname" {
		want = append([]byte("lo"), make([]byte, nameSize-len("lo"))...)
	}
	return Part{key, `"lo"`, []expr{meta(kind), cmp(equal, want)}}
}

// ARP matches frames of ARP.
func ARP() Part {
	const etherARP = 0x0806
	return Part{"meta protocol", "arp", []expr{meta(metaProtocol), cmp(equal, big16(etherARP))}}
}

// Direction matches packets of the side that began a connection, original, or
// of the other one, reply.
func Direction(name string) Part {
	way := lookUp(map[string]byte{"original": 0, "reply": 1}, name)
	return Part{"ct direction", name, []expr{connection(ctDirection), cmp(equal, []byte{way})}}
}

// State matches a state of the packet's connection: invalid, established,
// related, new, or several of them with commas between.
func State(names string) Part {
	known := map[string]uint32{"invalid": 1, "established": 2, "related": 4, "new": 8} // NF_CT_STATE_BIT
	bits := uint32(0)
	for name := range strings.SplitSeq(names, ",") {
		bits |= lookUp(known, name)
	}
	return Part{"ct state", names, []expr{
		connection(ctState), masked(native32(bits), native32(0)), cmp(unequal, native32(0)),
	}}
}

// ConnMark matches connections whose mark has that bit.
func ConnMark(bit uint32) Part {
	return Part{fmt.Sprintf("ct mark & 0x%08x", bit), fmt.Sprintf("== 0x%08x", bit), []expr{
		connection(ctMark), masked(native32(bit), native32(0)), cmp(equal, native32(bit)),
	}}
}

// Limit matches packets beyond a rate.
func Limit(perSecond uint64, burst uint32) Part {
	return Part{"limit", fmt.Sprintf("rate over %d/second burst %d packets", perSecond, burst), []expr{over(perSecond, burst)}}
}

// protocols are numbers of IANA.
func protocols() map[string]byte {
	return map[string]byte{"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58}
}

func lookUp[V any](known map[string]V, name string) V {
	v, ok := known[name]
	if !ok {
		panic("nft: bug: unknown word " + name)
	}
	return v
}
