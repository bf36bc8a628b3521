package netns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
)

// Refusal is one packet that the rules refused.
type Refusal struct {
	Proto string     // udp, icmp, sctp, …; a number for a protocol without a name here
	Src   netip.Addr // the sender's address, inside
	Dst   netip.Addr
	Port  uint16 // destination port; 0 for protocols without ports

	// Count is how many packets came too fast to record each: nothing else is
	// known of them, and no other field is set. 0: this is one packet.
	Count int64
}

// IP protocol numbers (IANA).
const (
	protoHopByHop = 0
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoAH       = 51
	protoDestOpts = 60
	protoDCCP     = 33
	protoSCTP     = 132
	protoUDPLite  = 136
)

// maxExtensions bounds the chain of IPv6 extension headers.
const maxExtensions = 8

var errPacket = errors.New("not the start of an IP packet")

// ParsePacket reads the start of an IP packet. The Refusal of a packet that is
// cut short after its addresses has no port.
func ParsePacket(b []byte) (Refusal, error) {
	if len(b) == 0 {
		return Refusal{}, errPacket
	}
	switch b[0] >> 4 {
	case 4:
		return parse4(b)
	case 6:
		return parse6(b)
	}
	return Refusal{}, errPacket
}

// parse4 reads an IPv4 header, RFC 791 section 3.1.
func parse4(b []byte) (Refusal, error) {
	header := int(b[0]&0x0f) * 4
	if header < 20 || len(b) < 20 {
		return Refusal{}, errPacket
	}
	r := Refusal{
		Proto: protoName(b[9]),
		Src:   netip.AddrFrom4([4]byte(b[12:16])),
		Dst:   netip.AddrFrom4([4]byte(b[16:20])),
	}
	first := binary.BigEndian.Uint16(b[6:])&0x1fff == 0 // fragment offset
	if first && len(b) >= header {
		r.Port = destinationPort(b[9], b[header:])
	}
	return r, nil
}

// parse6 reads an IPv6 header and its extensions, RFC 8200 sections 3 and 4.
func parse6(b []byte) (Refusal, error) {
	if len(b) < 40 {
		return Refusal{}, errPacket
	}
	r := Refusal{Src: netip.AddrFrom16([16]byte(b[8:24])), Dst: netip.AddrFrom16([16]byte(b[24:40]))}
	proto, rest := b[6], b[40:]
	for range maxExtensions {
		size := extensionSize(proto, rest)
		if size == 0 {
			break
		}
		if proto == protoFragment && binary.BigEndian.Uint16(rest[2:])&0xfff8 != 0 {
			r.Proto = protoName(rest[0])
			return r, nil // not the first fragment: no port in it
		}
		proto, rest = rest[0], rest[min(size, len(rest)):]
	}
	r.Proto, r.Port = protoName(proto), destinationPort(proto, rest)
	return r, nil
}

// extensionSize reports the length of the extension header proto at the start
// of b; 0 if it is something else or cut short.
func extensionSize(proto byte, b []byte) int {
	if len(b) < 8 {
		return 0
	}
	switch proto {
	case protoHopByHop, protoRouting, protoDestOpts:
		return (int(b[1]) + 1) * 8
	case protoFragment:
		return 8
	case protoAH: // RFC 4302 section 2.2
		return (int(b[1]) + 2) * 4
	}
	return 0
}

// destinationPort reads the port of the protocols that have one, all at the
// same place.
func destinationPort(proto byte, b []byte) uint16 {
	switch proto {
	case protoTCP, protoUDP, protoUDPLite, protoSCTP, protoDCCP:
		if len(b) >= 4 {
			return binary.BigEndian.Uint16(b[2:])
		}
	}
	return 0
}

func protoName(proto byte) string {
	switch proto {
	case 1:
		return "icmp"
	case 2:
		return "igmp"
	case 4, 41:
		return "ipip"
	case protoTCP:
		return "tcp"
	case protoUDP:
		return "udp"
	case protoDCCP:
		return "dccp"
	case 47:
		return "gre"
	case 50:
		return "esp"
	case 58:
		return "icmpv6"
	case protoSCTP:
		return "sctp"
	case protoUDPLite:
		return "udplite"
	}
	return strconv.Itoa(int(proto))
}
