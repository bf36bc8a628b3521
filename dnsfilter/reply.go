package dnsfilter

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/miekg/dns"
)

// Lifetimes of what we answer ourselves, in seconds.
const (
	// syntheticTTL is how long a client may keep a synthetic address. Far
	// below pinQuarantine, so an address outlives every cached answer.
	syntheticTTL = 60
	// deniedTTL is how long a client may remember a "no" (RFC 2308): short,
	// because the user's next step is to allow the name.
	deniedTTL = 5
	// maxEDEText bounds the words of an extended error.
	maxEDEText = 160
)

// outcome is what becomes of one query: the answer and the words of the event. Of own
// and addrs, those of the family that was asked for are the answer.
type outcome struct {
	rcode   int
	own     netip.Addr   // zero: none
	addrs   []netip.Addr // not changed
	ttl     uint32       // of the answer, in seconds
	ptr     string       // the name that a PTR question is answered with; "": none
	minimal bool         // the answer to ANY
	ede     uint16       // 0: none (code 0, "Other", is never sent)
	edeText [5]string    // one after the other
}

// negative is an answer without records.
func negative(rcode int) outcome { return outcome{rcode: rcode} }

// append appends the answer to q to b, which is empty. tcp lifts the size limit; over it,
// records are left out and TC is set. It is for all replies but bare ones; package dns
// is the oracle of its tests.
func (q *query) append(b []byte, o *outcome, tcp bool) []byte {
	b = q.appendHeader(b, o.rcode)
	if q.name != nil {
		b[5] = 1
		b = append(b, q.name...)
		b = binary.BigEndian.AppendUint16(b, q.qtype)
		b = binary.BigEndian.AppendUint16(b, q.qclass)
	}
	size := q.udpSize
	if tcp {
		size = dns.MaxMsgSize
	}
	var room [optBytes + 6 + maxEDEText]byte
	opt := q.appendOPT(room[:0], o)
	size -= len(opt)
	b, records, whole := q.appendAnswers(b, o, size)
	binary.BigEndian.PutUint16(b[6:], records)
	if records == 0 && whole && (o.rcode == dns.RcodeSuccess || o.rcode == dns.RcodeNameError) {
		if whole = len(b)+len(noSuchThing) <= size; whole {
			b[9] = 1
			b = append(b, noSuchThing...)
		}
	}
	if !whole {
		b[2] |= 0x02 // TC
	}
	if len(opt) > 0 {
		b[11] = 1
	}
	return append(b, opt...)
}

// appendHeader appends the twelve bytes that every answer begins with, all counts zero:
// what the client said of opcode, RD and CD, and that recursion is available.
func (q *query) appendHeader(b []byte, rcode int) []byte {
	first, second := byte(0x80|q.opcode<<3), byte(0x80|rcode&0xf)
	if q.rd {
		first |= 0x01
	}
	if q.cd {
		second |= 0x10
	}
	return append(b, byte(q.id>>8), byte(q.id), first, second, 0, 0, 0, 0, 0, 0, 0, 0)
}

// appendAnswers appends the answer section as far as the message stays within size
// bytes, and reports how many records that are; whole is false when there are more.
func (q *query) appendAnswers(b []byte, o *outcome, size int) (_ []byte, n uint16, whole bool) {
	switch {
	case o.minimal: // RFC 8482 section 4.2
		b = appendRecord(b, dns.TypeHINFO, syntheticTTL, 9)
		return append(b, "\x07RFC8482\x00"...), 1, true
	case o.ptr != "":
		b = appendRecord(b, dns.TypePTR, o.ttl, len(o.ptr)+2)
		return appendName(b, o.ptr), 1, true
	}
	b, n, whole = q.appendAddr(b, n, o.own, o.ttl, size)
	for i := 0; i < len(o.addrs) && whole; i++ {
		b, n, whole = q.appendAddr(b, n, o.addrs[i], o.ttl, size)
	}
	return b, n, whole
}

// appendAddr appends a as the n+1st record, if it is what q asks for.
func (q *query) appendAddr(b []byte, n uint16, a netip.Addr, ttl uint32, size int) (_ []byte, _ uint16, whole bool) {
	switch {
	case q.qtype == dns.TypeA && a.Unmap().Is4():
		if len(b)+recordBytes+4 > size {
			return b, n, false
		}
		v4 := a.Unmap().As4()
		return append(appendRecord(b, q.qtype, ttl, len(v4)), v4[:]...), n + 1, true
	case q.qtype == dns.TypeAAAA && a.Is6() && !a.Is4In6():
		if len(b)+recordBytes+16 > size {
			return b, n, false
		}
		v6 := a.As16()
		return append(appendRecord(b, q.qtype, ttl, len(v6)), v6[:]...), n + 1, true
	}
	return b, n, true
}

// recordBytes is the size of a record that appendRecord begins, without its data.
const recordBytes = 12

// appendRecord begins a record of class IN at the name that was asked for: a pointer to
// the question, which always stands behind the header.
func appendRecord(b []byte, kind uint16, ttl uint32, size int) []byte {
	b = append(b, 0xc0, headerBytes, byte(kind>>8), byte(kind), 0, dns.ClassINET)
	b = binary.BigEndian.AppendUint32(b, ttl)
	return append(b, byte(size>>8), byte(size))
}

// appendName appends a canonical name, which has no root dot, in wire format.
func appendName(b []byte, name string) []byte {
	at := len(b)
	b = append(b, 0)
	for i := range len(name) {
		if name[i] == '.' {
			at = len(b)
			b = append(b, 0)
			continue
		}
		b[at]++
		b = append(b, name[i])
	}
	return append(b, 0)
}

// appendOPT appends our own OPT record if the client sent one: our size, the client's
// DO bit (RFC 3225 section 3), at most one extended error. No option of the client is
// reflected.
func (q *query) appendOPT(b []byte, o *outcome) []byte {
	if !q.edns {
		return b
	}
	flags := byte(0)
	if q.do {
		flags = 0x80
	}
	const size = ourUDPBytes
	b = append(b, 0, 0, byte(dns.TypeOPT), size>>8, size&0xff, byte(o.rcode>>4), 0, flags, 0, 0, 0)
	if o.ede == 0 {
		return b
	}
	b = append(b, 0, dns.EDNS0EDE, 0, 0, byte(o.ede>>8), byte(o.ede))
	text := len(b)
	for _, part := range o.edeText {
		kept := clip(part, maxEDEText-(len(b)-text))
		if b = append(b, kept...); len(kept) < len(part) {
			break
		}
	}
	b[optBytes-1] = byte(len(b) - optBytes)
	b[optBytes+3] = byte(len(b) - optBytes - 4)
	return b
}

// bare is an answer of twelve bytes, for when nothing more can be said.
func (q *query) bare(rcode int) []byte {
	wire := make([]byte, headerBytes)
	wire[0], wire[1] = byte(q.id>>8), byte(q.id)
	wire[2] = 0x80 | byte(q.opcode<<3)
	wire[3] = 0x80 | byte(rcode&0xf)
	return wire
}

// noSuchThing is the SOA that makes a negative answer cacheable, for deniedTTL
// (RFC 2308 section 3). It stands at the root because every name lies below it:
//
//	. 5 IN SOA egressd.invalid. nobody.invalid. 1 3600 600 86400 5
const noSuchThing = "\x00\x00\x06\x00\x01\x00\x00\x00\x05\x00\x35" +
	"\x07egressd\x07invalid\x00\x06nobody\x07invalid\x00" +
	"\x00\x00\x00\x01\x00\x00\x0e\x10\x00\x00\x02\x58\x00\x01\x51\x80\x00\x00\x00\x05"

// clip bounds s to n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// seconds is d as a TTL: at least 1, at most ceiling.
func seconds(d, ceiling time.Duration) uint32 {
	return uint32(max(min(d, ceiling), time.Second) / time.Second)
}
