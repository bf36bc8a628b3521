package dnsfilter

import (
	"encoding/binary"
	"net/netip"

	"github.com/miekg/dns"

	"egressd/policy"
)

// appendQuestion appends a query that is made from scratch: the judged name, a type, and
// nothing that a client sent. RD is set, the id is not; OPT tells our size.
func appendQuestion(b []byte, name policy.Host, qtype uint16) []byte {
	b = append(b, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1)
	b = appendName(b, name.Name())
	b = append(b, byte(qtype>>8), byte(qtype), 0, dns.ClassINET)
	const size = ourUDPBytes
	return append(b, 0, 0, byte(dns.TypeOPT), size>>8, size&0xff, 0, 0, 0, 0, 0, 0)
}

// readPlain reads the usual reply to a question of qtype, whose section is that of b:
// addresses of the very name that was asked for, or none and an SOA that says for how
// long, and perhaps an empty OPT. False: it is another kind, which package dns reads.
//
// Threat: a server writes a reply that this reads as one thing and package dns as
// another -> it takes few forms, each to its last byte; FuzzReadPlain holds what it reads
// against package dns. Left over: nothing; all addresses are judged anyway.
func readPlain(b []byte, qtype uint16) (records, bool) {
	const tc = 0x02
	count := func(at int) int { return int(binary.BigEndian.Uint16(b[at:])) }
	if len(b) < headerBytes || b[2]&tc != 0 || count(4) != 1 || count(8) > 1 || count(10) > 1 {
		return records{}, false
	}
	answers, authority, additional := count(6), count(8), count(10)
	rcode := int(b[3] & 0xf)
	if answers > maxAddrs || answers > 0 && (rcode != dns.RcodeSuccess || authority > 0) ||
		rcode != dns.RcodeSuccess && rcode != dns.RcodeNameError {
		return records{}, false
	}
	rec := records{exists: rcode == dns.RcodeSuccess, keep: failureTTL}
	name := b[headerBytes : headerBytes+questionBytes(b[headerBytes:])-4]
	rest := b[headerBytes+len(name)+4:]
	ok := true
	if answers > 0 {
		rest, ok = rec.readAddrs(rest, qtype, answers)
	} else if authority > 0 {
		rest, ok = rec.readSOA(rest, name)
	}
	if ok && additional > 0 {
		ok = len(rest) == optBytes && rest[0] == 0 && binary.BigEndian.Uint16(rest[1:]) == dns.TypeOPT &&
			rest[5] == 0 && rest[9] == 0 && rest[10] == 0 // no more of the code, no options
		rest = nil
	}
	return rec, ok && len(rest) == 0
}

// readAddrs reads n addresses of the name that was asked for, in the form that is usual:
// a pointer to it.
func (rec *records) readAddrs(b []byte, qtype uint16, n int) (rest []byte, ok bool) {
	size := 4
	if qtype == dns.TypeAAAA {
		size = 16
	}
	rec.addrs = make([]netip.Addr, 0, n)
	ttl := maxTTL
	for range n {
		if len(b) < recordBytes+size || b[0] != 0xc0 || b[1] != headerBytes || binary.BigEndian.Uint16(b[2:]) != qtype ||
			binary.BigEndian.Uint16(b[4:]) != dns.ClassINET || int(binary.BigEndian.Uint16(b[10:])) != size {
			return nil, false
		}
		a, _ := netip.AddrFromSlice(b[recordBytes : recordBytes+size])
		rec.addrs = append(rec.addrs, a)
		ttl = min(ttl, lifetime(binary.BigEndian.Uint32(b[6:])))
		b = b[recordBytes+size:]
	}
	rec.keep = max(ttl, minTTL)
	return b, true
}

// readSOA reads one SOA record, of whatever owner. name is the one that was asked for.
func (rec *records) readSOA(b, name []byte) (rest []byte, ok bool) {
	b, ok = skipName(b, name)
	const fixed = 10 // type, class, TTL, length
	if !ok || len(b) < fixed || binary.BigEndian.Uint16(b) != dns.TypeSOA || binary.BigEndian.Uint16(b[2:]) != dns.ClassINET {
		return nil, false
	}
	ttl, size := binary.BigEndian.Uint32(b[4:]), int(binary.BigEndian.Uint16(b[8:]))
	if len(b) < fixed+size {
		return nil, false
	}
	data, rest := b[fixed:fixed+size], b[fixed+size:]
	for range 2 { // its server and its mailbox
		if data, ok = skipName(data, name); !ok {
			return nil, false
		}
	}
	const numbers = 20
	if len(data) != numbers {
		return nil, false
	}
	least := min(lifetime(ttl), lifetime(binary.BigEndian.Uint32(data[16:])))
	rec.keep = min(max(least, minTTL), maxNegTTL)
	return rest, true
}

// skipName skips a name that perhaps ends in a pointer to a label of asked, the name in
// the question; where other pointers lead is left to package dns.
func skipName(b, asked []byte) (rest []byte, ok bool) {
	for size := 1; len(b) > 0; {
		n := int(b[0])
		if n == 0 {
			return b[1:], true
		}
		if n == 0xc0 && len(b) > 1 {
			more := labelsFrom(asked, int(b[1])-headerBytes)
			return b[2:], more > 0 && size+more <= maxName
		}
		if size += n + 1; n > maxLabel || size > maxName || len(b) < 1+n {
			return nil, false
		}
		b = b[1+n:]
	}
	return nil, false
}

// labelsFrom is how many bytes the labels of name take from the one that begins at at;
// 0: none does.
func labelsFrom(name []byte, at int) int {
	for i := 0; i <= at && name[i] != 0; i += 1 + int(name[i]) {
		if i == at {
			return len(name) - 1 - at
		}
	}
	return 0
}
