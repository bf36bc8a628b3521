package rules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

// The register that every expression here uses (NFT_REG_1).
const register = 1

const (
	tcp = unix.IPPROTO_TCP
	udp = unix.IPPROTO_UDP
)

func l4proto(proto byte) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{proto}},
	}
}

// dport matches the destination port of tcp or udp (the same place in both).
func dport(proto byte, port uint16) []expr.Any {
	return append(l4proto(proto),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: bigEndian(port)},
	)
}

// icmpType matches the message type (RFC 792, RFC 4443 section 2.1).
func icmpType(proto, kind byte) []expr.Any {
	return append(l4proto(proto),
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{kind}},
	)
}

// daddr4 matches the destination of IPv4 packets (RFC 791 section 3.1).
func daddr4(prefix string) []expr.Any { return daddr(unix.NFPROTO_IPV4, 16, prefix) }

// daddr6 matches the destination of IPv6 packets (RFC 8200 section 3).
func daddr6(prefix string) []expr.Any { return daddr(unix.NFPROTO_IPV6, 24, prefix) }

func daddr(family byte, offset uint32, prefix string) []expr.Any {
	p := netip.MustParsePrefix(prefix)
	addr := p.Masked().Addr().AsSlice()
	match := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{family}},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(len(addr))},
	}
	if p.Bits() < p.Addr().BitLen() {
		match = append(match, &expr.Bitwise{
			SourceRegister: register, DestRegister: register,
			Len: uint32(len(addr)), Mask: mask(p), Xor: make([]byte, len(addr)),
		})
	}
	return append(match, &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: addr})
}

func mask(p netip.Prefix) []byte {
	m := make([]byte, p.Addr().BitLen()/8)
	for i := range p.Bits() {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

func notLoopback() []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: name},
	}
}

func accept(text string, match ...[]expr.Any) Rule {
	return Rule{
		Text:  text + " accept",
		exprs: append(slices.Concat(match...), &expr.Verdict{Kind: expr.VerdictAccept}),
	}
}

// established lets replies, and errors about what was let through, pass.
func established() Rule {
	states := make([]byte, 4)
	binary.NativeEndian.PutUint32(states, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)
	return accept("ct state established,related", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: register},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: states, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: register, Data: make([]byte, 4)},
	})
}

// jump goes to chain for good: that chain ends every packet.
func jump(text string, match []expr.Any, chain string) Rule {
	if text != "" {
		text += " "
	}
	return Rule{
		Text:  text + "goto " + chain,
		exprs: append(match, &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain}),
	}
}

// Goto goes to chain with every packet.
func Goto(chain string) Rule { return jump("", nil, chain) }

// redirect sends the connection to port on 127.0.0.1 or ::1.
func redirect(text string, match []expr.Any, port uint16) Rule {
	return Rule{
		Text: fmt.Sprintf("%s redirect to :%d", text, port),
		exprs: append(match,
			&expr.Immediate{Register: register, Data: bigEndian(port)},
			&expr.Redir{RegisterProtoMin: register, RegisterProtoMax: register, Flags: unix.NF_NAT_RANGE_PROTO_SPECIFIED},
		),
	}
}

func reject() Rule {
	return Rule{
		Text:  "reject",
		exprs: []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}},
	}
}

func drop() Rule {
	return Rule{Text: "drop", exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}}
}

// visit runs chain and comes back.
func visit(chain string) Rule {
	return Rule{
		Text:  "jump " + chain,
		exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictJump, Chain: chain}},
	}
}

// countRefusal tells that there was a packet where refusals are too many to
// record each, and ends chain record with it.
func countRefusal() Rule {
	return Rule{
		Text: fmt.Sprintf("limit rate over %d/second burst %d packets log group %d return", logPerSecond, logBurst, capture.CountGroup),
		exprs: []expr.Any{
			&expr.Limit{Type: expr.LimitTypePkts, Rate: logPerSecond, Unit: expr.LimitTimeSecond, Burst: logBurst, Over: true},
			&expr.Log{Key: 1 << unix.NFTA_LOG_GROUP, Group: capture.CountGroup},
			&expr.Verdict{Kind: expr.VerdictReturn},
		},
	}
}

// logRefusal records the packet.
func logRefusal() Rule {
	return Rule{
		Text: fmt.Sprintf("log group %d snaplen %d queue-threshold 1", logGroup, logSnaplen),
		exprs: []expr.Any{
			&expr.Log{
				Key:        1<<unix.NFTA_LOG_GROUP | 1<<unix.NFTA_LOG_SNAPLEN | 1<<unix.NFTA_LOG_QTHRESHOLD,
				Group:      logGroup,
				Snaplen:    logSnaplen,
				QThreshold: 1, // hand over at once
			},
		},
	}
}

func bigEndian(port uint16) []byte { return binary.BigEndian.AppendUint16(nil, port) }
