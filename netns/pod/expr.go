package pod

import "encoding/binary"

// Constants of linux/netfilter/nf_tables.h, here by their kernel names because
// rules are also printed where there is no such header.
const (
	attrListElem = 1 // NFTA_LIST_ELEM
	attrExprName = 1 // NFTA_EXPR_NAME
	attrExprData = 2 // NFTA_EXPR_DATA

	dataValue   = 1 // NFTA_DATA_VALUE
	dataVerdict = 2 // NFTA_DATA_VERDICT

	register1       = 1 // NFT_REG_1
	registerVerdict = 0 // NFT_REG_VERDICT

	metaProtocol  = 1  // NFT_META_PROTOCOL
	metaMark      = 3  // NFT_META_MARK
	metaIIF       = 4  // NFT_META_IIF
	metaOIF       = 5  // NFT_META_OIF
	metaSKUID     = 10 // NFT_META_SKUID
	metaRTClassID = 13 // NFT_META_RTCLASSID
	metaNFProto   = 15 // NFT_META_NFPROTO
	metaL4Proto   = 16 // NFT_META_L4PROTO

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

	protoFamilyIPv4 = 2  // NFPROTO_IPV4
	protoFamilyIPv6 = 10 // NFPROTO_IPV6

	loIndex = 1 // the interface index of lo in every network namespace
)

// attr is a netlink attribute: data, or others.
type attr struct {
	kind  uint16
	data  []byte
	inner []attr
	list  bool // inner is all there may be, in that order
}

func number(kind uint16, n uint32) attr {
	return attr{kind: kind, data: binary.BigEndian.AppendUint32(nil, n)}
}

func text(kind uint16, s string) attr { return attr{kind: kind, data: append([]byte(s), 0)} }

func nest(kind uint16, inner ...attr) attr { return attr{kind: kind, inner: inner} }

// expr is one step of a rule.
type expr struct {
	name  string
	attrs []attr
}

func (e expr) attr() attr {
	return nest(attrListElem, text(attrExprName, e.name), nest(attrExprData, e.attrs...))
}

func meta(key uint32) expr {
	return expr{"meta", []attr{number(2, key), number(1, register1)}} // NFTA_META_KEY, _DREG
}

func connection(key uint32) expr {
	return expr{"ct", []attr{number(2, key), number(1, register1)}} // NFTA_CT_KEY, _DREG
}

func setConnection(key uint32) expr {
	return expr{"ct", []attr{number(2, key), number(4, register1)}} // NFTA_CT_KEY, _SREG
}

func network(offset, length uint32) expr   { return payload(baseNetwork, offset, length) }
func transport(offset, length uint32) expr { return payload(baseTransport, offset, length) }

func payload(base, offset, length uint32) expr {
	return expr{"payload", []attr{ // NFTA_PAYLOAD_DREG, _BASE, _OFFSET, _LEN
		number(1, register1), number(2, base), number(3, offset), number(4, length),
	}}
}

// masked is register & mask ^ xor.
func masked(mask, xor []byte) expr {
	return expr{"bitwise", []attr{ // NFTA_BITWISE_SREG, _DREG, _LEN, _MASK, _XOR
		number(1, register1), number(2, register1), number(3, uint32(len(mask))), value(4, mask), value(5, xor),
	}}
}

func cmp(op uint32, data []byte) expr {
	return expr{"cmp", []attr{number(1, register1), number(2, op), value(3, data)}} // NFTA_CMP_SREG, _OP, _DATA
}

func immediate(data []byte) expr {
	return expr{"immediate", []attr{number(1, register1), value(2, data)}} // NFTA_IMMEDIATE_DREG, _DATA
}

func verdict(code uint32, chain string) expr {
	v := []attr{number(1, code)} // NFTA_VERDICT_CODE
	if chain != "" {
		v = append(v, text(2, chain)) // NFTA_VERDICT_CHAIN
	}
	return expr{"immediate", []attr{number(1, registerVerdict), nest(2, nest(dataVerdict, v...))}}
}

func redirectToRegister() expr {
	return expr{"redir", []attr{ // NFTA_REDIR_REG_PROTO_MIN, _MAX, _FLAGS
		number(1, register1), number(2, register1), number(3, natProtoSpecified),
	}}
}

func rejection(kind uint32, code byte) expr {
	attrs := []attr{number(1, kind)} // NFTA_REJECT_TYPE
	if kind != rejectReset {
		attrs = append(attrs, attr{kind: 2, data: []byte{code}}) // NFTA_REJECT_ICMP_CODE
	}
	return expr{"reject", attrs}
}

func value(kind uint16, data []byte) attr { return nest(kind, attr{kind: dataValue, data: data}) }

func big16(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// native32 is how the kernel keeps numbers that are not on the wire.
func native32(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
