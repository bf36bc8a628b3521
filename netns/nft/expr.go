package nft

import (
	"encoding/binary"

	"egressd/netns/netlink"
)

// Constants of linux/netfilter/nf_tables.h by their kernel names: rules are also
// printed on platforms that do not have them.
const (
	attrListElem = 1 // NFTA_LIST_ELEM
	attrExprName = 1 // NFTA_EXPR_NAME
	attrExprData = 2 // NFTA_EXPR_DATA

	dataValue   = 1 // NFTA_DATA_VALUE
	dataVerdict = 2 // NFTA_DATA_VERDICT

	register1       = 1 // NFT_REG_1
	registerVerdict = 0 // NFT_REG_VERDICT

	metaProtocol = 1  // NFT_META_PROTOCOL
	metaNFProto  = 15 // NFT_META_NFPROTO
	metaL4Proto  = 16 // NFT_META_L4PROTO

	ctState     = 0 // NFT_CT_STATE
	ctDirection = 1 // NFT_CT_DIRECTION
	ctMark      = 3 // NFT_CT_MARK

	equal   = 0 // NFT_CMP_EQ
	unequal = 1 // NFT_CMP_NEQ

	baseNetwork   = 1 // NFT_PAYLOAD_NETWORK_HEADER
	baseTransport = 2 // NFT_PAYLOAD_TRANSPORT_HEADER

	verdictDrop   = 0              // NF_DROP
	verdictAccept = 1              // NF_ACCEPT
	verdictJump   = 0xffffffff - 2 // NFT_JUMP, -3
	verdictGoto   = 0xffffffff - 3 // NFT_GOTO, -4
	verdictReturn = 0xffffffff - 4 // NFT_RETURN, -5

	rejectReset = 1 // NFT_REJECT_TCP_RST
	rejectICMPX = 2 // NFT_REJECT_ICMPX_UNREACH
	icmpxPort   = 1 // NFT_REJECT_ICMPX_PORT_UNREACH

	natProtoSpecified = 2 // NF_NAT_RANGE_PROTO_SPECIFIED
	limitInverted     = 1 // NFT_LIMIT_F_INV

	protoFamilyIPv4 = 2  // NFPROTO_IPV4
	protoFamilyIPv6 = 10 // NFPROTO_IPV6

	nameSize = 16 // IFNAMSIZ
)

// expr is one step of a rule. Every step works on register 1.
type expr struct {
	name  string
	attrs []netlink.Attr
}

func (e expr) attr() netlink.Attr {
	return netlink.Nest(attrListElem, netlink.Text(attrExprName, e.name), netlink.Nest(attrExprData, e.attrs...))
}

func meta(key uint32) expr { // NFTA_META_KEY, _DREG
	return expr{"meta", []netlink.Attr{netlink.Number(2, key), netlink.Number(1, register1)}}
}

func connection(key uint32) expr { // NFTA_CT_KEY, _DREG
	return expr{"ct", []netlink.Attr{netlink.Number(2, key), netlink.Number(1, register1)}}
}

func setConnection(key uint32) expr { // NFTA_CT_KEY, _SREG
	return expr{"ct", []netlink.Attr{netlink.Number(2, key), netlink.Number(4, register1)}}
}

func network(offset, length uint32) expr   { return payload(baseNetwork, offset, length) }
func transport(offset, length uint32) expr { return payload(baseTransport, offset, length) }

func payload(base, offset, length uint32) expr { // NFTA_PAYLOAD_DREG, _BASE, _OFFSET, _LEN
	return expr{"payload", []netlink.Attr{
		netlink.Number(1, register1), netlink.Number(2, base), netlink.Number(3, offset), netlink.Number(4, length),
	}}
}

// masked is register & mask ^ xor.
func masked(mask, xor []byte) expr { // NFTA_BITWISE_SREG, _DREG, _LEN, _MASK, _XOR
	return expr{"bitwise", []netlink.Attr{
		netlink.Number(1, register1), netlink.Number(2, register1), netlink.Number(3, uint32(len(mask))),
		value(4, mask), value(5, xor),
	}}
}

func cmp(op uint32, data []byte) expr { // NFTA_CMP_SREG, _OP, _DATA
	return expr{"cmp", []netlink.Attr{netlink.Number(1, register1), netlink.Number(2, op), value(3, data)}}
}

func immediate(data []byte) expr { // NFTA_IMMEDIATE_DREG, _DATA
	return expr{"immediate", []netlink.Attr{netlink.Number(1, register1), value(2, data)}}
}

func verdict(code uint32, chain string) expr {
	v := []netlink.Attr{netlink.Number(1, code)} // NFTA_VERDICT_CODE
	if chain != "" {
		v = append(v, netlink.Text(2, chain)) // NFTA_VERDICT_CHAIN
	}
	return expr{"immediate", []netlink.Attr{
		netlink.Number(1, registerVerdict), netlink.Nest(2, netlink.Nest(dataVerdict, v...)),
	}}
}

func redirectToRegister() expr { // NFTA_REDIR_REG_PROTO_MIN, _MAX, _FLAGS
	return expr{"redir", []netlink.Attr{
		netlink.Number(1, register1), netlink.Number(2, register1), netlink.Number(3, natProtoSpecified),
	}}
}

func rejection(kind uint32, code byte) expr {
	attrs := []netlink.Attr{netlink.Number(1, kind)} // NFTA_REJECT_TYPE
	if kind != rejectReset {
		attrs = append(attrs, netlink.Attr{Kind: 2, Data: []byte{code}}) // NFTA_REJECT_ICMP_CODE
	}
	return expr{"reject", attrs}
}

// over matches what comes beyond a rate of packets.
func over(perSecond uint64, burst uint32) expr { // NFTA_LIMIT_RATE, _UNIT, _BURST, _TYPE, _FLAGS
	return expr{"limit", []netlink.Attr{
		number64(1, perSecond), number64(2, 1), netlink.Number(3, burst),
		netlink.Number(4, 0), netlink.Number(5, limitInverted), // NFT_LIMIT_PKTS
	}}
}

func value(kind uint16, data []byte) netlink.Attr {
	return netlink.Nest(kind, netlink.Attr{Kind: dataValue, Data: data})
}

func number64(kind uint16, n uint64) netlink.Attr {
	return netlink.Attr{Kind: kind, Data: binary.BigEndian.AppendUint64(nil, n)}
}

func big16(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// native32 is how the kernel keeps numbers that do not come from a packet.
func native32(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
