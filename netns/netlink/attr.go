// Package netlink reads and writes netlink(7): attributes, messages, and the
// socket they travel on. What a message asks for is up to the caller:
//
//	c, err := netlink.Dial(unix.NETLINK_ROUTE)
//	defer c.Close()
//	body := netlink.Append(make([]byte, unix.SizeofIfInfomsg), netlink.Text(unix.IFLA_IFNAME, "eth0"))
//	err = netlink.First(c.Send([]netlink.Message{{Kind: unix.RTM_NEWLINK, Flags: unix.NLM_F_ACK, Body: body}}))
//
// Pid 1 of every run starts with this package, so it imports next to nothing.
package netlink

import (
	"encoding/binary"
	"errors"
)

// Constants of linux/netlink.h, which other platforms do not have.
const (
	attrHeader   = 4       // NLA_HDRLEN
	attrAlign    = 4       // NLA_ALIGNTO
	attrNested   = 1 << 15 // NLA_F_NESTED
	attrBigOrder = 1 << 14 // NLA_F_NET_BYTEORDER
)

// Attr is an attribute to be sent: data, or a list of other attributes.
type Attr struct {
	Kind  uint16
	Data  []byte
	Inner []Attr // nil: Data counts
	List  bool   // for comparisons: Inner is complete and in order
}

// Number is an attribute of 32 bits in network byte order, as nfnetlink has
// them.
func Number(kind uint16, n uint32) Attr {
	return Attr{Kind: kind, Data: binary.BigEndian.AppendUint32(nil, n)}
}

// Native is an attribute of 32 bits in the processor's byte order, as
// rtnetlink has them.
func Native(kind uint16, n uint32) Attr {
	return Attr{Kind: kind, Data: binary.NativeEndian.AppendUint32(nil, n)}
}

// Text is an attribute of a string and its closing zero byte.
func Text(kind uint16, s string) Attr { return Attr{Kind: kind, Data: append([]byte(s), 0)} }

// Nest is an attribute of other attributes.
func Nest(kind uint16, inner ...Attr) Attr { return Attr{Kind: kind, Inner: inner} }

// Append appends attributes to b, each with its padding. One attribute holds at
// most 64 KiB.
func Append(b []byte, attrs ...Attr) []byte {
	for _, a := range attrs {
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		kind := a.Kind
		if a.Inner != nil {
			kind |= attrNested
			b = Append(b, a.Inner...)
		} else {
			b = append(b, a.Data...)
		}
		binary.NativeEndian.PutUint16(b[at:], uint16(len(b)-at)) // #nosec: attributes here are small
		binary.NativeEndian.PutUint16(b[at+2:], kind)
		for len(b)%attrAlign != 0 {
			b = append(b, 0)
		}
	}
	return b
}

// Raw is an attribute as the kernel wrote it. Only the reader knows whether its
// data are attributes again.
type Raw struct {
	Kind uint16 // without flags
	Data []byte
}

var errAttr = errors.New("netlink: an attribute of wrong length")

// Parse reads a list of attributes. If one of them is cut short, it reports an
// error and the attributes before it.
func Parse(b []byte) ([]Raw, error) {
	var attrs []Raw
	for len(b) >= attrHeader {
		n := int(binary.NativeEndian.Uint16(b))
		if n < attrHeader || n > len(b) {
			return attrs, errAttr
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (attrNested | attrBigOrder)
		attrs = append(attrs, Raw{kind, b[attrHeader:n]})
		b = b[min((n+attrAlign-1)&^(attrAlign-1), len(b)):]
	}
	return attrs, nil
}

// Find reports the data of the first attribute of that kind, nil if there is
// none.
func Find(attrs []Raw, kind uint16) []byte {
	for _, a := range attrs {
		if a.Kind == kind {
			return a.Data
		}
	}
	return nil
}
