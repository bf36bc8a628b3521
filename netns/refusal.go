package netns

import (
	"errors"
	"net/netip"
)

// Refusal is one packet that the rules refused.
type Refusal struct {
	Proto string     // udp, icmp, icmpv6, sctp, …; a number for a protocol without a name here
	Src   netip.Addr // zero when unknown
	Dst   netip.Addr
	Port  uint16 // destination port; 0 for protocols without ports
}

// ParsePacket reads what Refusal tells from the start of an IP packet.
func ParsePacket(packet []byte) (Refusal, error) { return Refusal{}, errors.New("short packet") }
