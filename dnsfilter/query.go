package dnsfilter

import (
	"encoding/binary"
	"strings"

	"github.com/miekg/dns"

	"egressd/policy"
)

// Sizes of the DNS message format (RFC 1035 section 4.1, RFC 6891 section 6.1.2).
const (
	headerBytes = 12
	maxLabel    = 63
	maxName     = 255
	optBytes    = 11 // an OPT record without options
	minUDPBytes = 512
	ourUDPBytes = 1232 // what every path carries whole (DNS flag day 2020)
)

// query is one well-formed question as the client wrote it. Nothing but the
// question and the two numbers of OPT is kept: what the client says beyond
// that is neither reflected nor forwarded.
type query struct {
	id     uint16
	opcode int
	rd, cd bool

	// name is what was asked for as the client wrote it, labels with their lengths and
	// the root label at the end, inside the message. Nil: there is no readable question.
	name   []byte
	qtype  uint16
	qclass uint16

	edns    bool // the client sent OPT
	do      bool
	version uint8
	udpSize int // what the client accepts over UDP, 512..1232
}

// parseQuery reads wire. The code is the RCODE to answer with when it is not
// an acceptable query (dns.RcodeSuccess: it is); ok is false when it deserves
// no answer at all.
//
// Threat: a client writes a message that two parsers read differently (pointers
// in the question, a second question, records besides it, bytes after it) ->
// exactly one spelling of a query is taken: header, one question without
// compression, at most one OPT, end. Left over: nothing; odd queries fail.
func parseQuery(wire []byte) (q query, code int, ok bool) {
	if len(wire) < headerBytes {
		return q, 0, false
	}
	bits := binary.BigEndian.Uint16(wire[2:])
	const qr, rd, cd, tc = 1 << 15, 1 << 8, 1 << 4, 1 << 9
	if bits&qr != 0 {
		return q, 0, false // an answer; answering answers makes loops
	}
	q = query{
		id:      binary.BigEndian.Uint16(wire),
		opcode:  int(bits >> 11 & 0xf),
		rd:      bits&rd != 0,
		cd:      bits&cd != 0,
		udpSize: minUDPBytes,
	}
	if q.opcode != dns.OpcodeQuery {
		return q, dns.RcodeNotImplemented, true
	}
	count := func(i int) uint16 { return binary.BigEndian.Uint16(wire[4+2*i:]) }
	if bits&tc != 0 || count(0) != 1 || count(1) != 0 || count(2) != 0 || count(3) > 1 {
		return q, dns.RcodeFormatError, true
	}
	rest, ok := q.readQuestion(wire[headerBytes:])
	if !ok {
		return q, dns.RcodeFormatError, true
	}
	if count(3) == 1 {
		rest, ok = q.readOPT(rest)
	}
	if !ok || len(rest) != 0 {
		return q, dns.RcodeFormatError, true
	}
	if q.edns && q.version != 0 {
		return q, dns.RcodeBadVers, true
	}
	return q, dns.RcodeSuccess, true
}

// readQuestion reads name, type and class. The name stays nil unless all is well.
func (q *query) readQuestion(b []byte) (rest []byte, ok bool) {
	name := b
	for size := 1; ; {
		if len(b) == 0 {
			return nil, false
		}
		n := int(b[0])
		b = b[1:]
		if n == 0 {
			break
		}
		if size += n + 1; n > maxLabel || size > maxName || len(b) < n {
			return nil, false // pointers (0xc0) are "longer than 63" too
		}
		b = b[n:]
	}
	if len(b) < 4 {
		return nil, false
	}
	q.name = name[:len(name)-len(b)]
	q.qtype, q.qclass = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return b[4:], q.qtype != dns.TypeNone && q.qtype != dns.TypeOPT
}

// readOPT reads one OPT record (RFC 6891 section 6.1.2); anything else in the
// additional section is refused. Its options are skipped unread.
func (q *query) readOPT(b []byte) (rest []byte, ok bool) {
	if len(b) < optBytes || b[0] != 0 || binary.BigEndian.Uint16(b[1:]) != dns.TypeOPT {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b[9:]))
	if len(b) < optBytes+n {
		return nil, false
	}
	q.edns = true
	q.version = b[6]
	q.do = b[7]&0x80 != 0
	q.udpSize = min(max(int(binary.BigEndian.Uint16(b[3:])), minUDPBytes), ourUDPBytes)
	return b[optBytes+n:], true
}

// host reports what to judge: the name asked for, in canonical spelling. hint is what it
// may well be; zero: nobody knows.
//
// Threat: a label holds a dot, a NUL, a bracket or other bytes that change
// their meaning once labels are joined into text -> only letters, digits,
// hyphen and underscore go on to ParseHost, which has the last word. Left
// over: names that only exist in such spellings cannot be asked for.
func (q *query) host(known *hosts, hint policy.Host) (policy.Host, bool) {
	var room [maxName]byte
	text := room[:0]
	for rest := q.name; len(rest) > 0 && rest[0] != 0; {
		var label []byte
		label, rest = rest[1:1+rest[0]], rest[1+rest[0]:]
		if len(text) > 0 {
			text = append(text, '.')
		}
		for _, c := range label {
			if !isHostByte(c) {
				return policy.Host{}, false
			}
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A' // as ParseHost does
			}
			text = append(text, c)
		}
	}
	if len(text) == 0 {
		return policy.Host{}, false
	}
	if string(text) == hint.Name() {
		return hint, true
	}
	return known.parse(text)
}

// hosts are the latest names of one goroutine, so that a name that is asked for again
// needs no memory. Nil remembers nothing.
type hosts map[string]policy.Host

// maxHosts bounds hosts. Beyond, it begins anew.
const maxHosts = 4096

// parse reads a name; an address literal is none.
func (m *hosts) parse(text []byte) (policy.Host, bool) {
	if m != nil {
		if h, ok := (*m)[string(text)]; ok {
			return h, true
		}
	}
	h, err := policy.ParseHost(string(text))
	if err != nil || h.Name() == "" {
		return policy.Host{}, false
	}
	if m != nil {
		if *m == nil || len(*m) >= maxHosts {
			*m = make(hosts)
		}
		(*m)[h.Name()] = h
	}
	return h, true
}

func isHostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// spelling reports the name in presentation format, as asked (RFC 4343
// section 2.1 escapes), which packs back into the same bytes.
func (q *query) spelling() string {
	if q.name == nil {
		return ""
	}
	if len(q.name) == 1 {
		return "."
	}
	var b strings.Builder
	for rest := q.name; rest[0] != 0; rest = rest[1+rest[0]:] {
		for _, c := range rest[1 : 1+rest[0]] {
			if isHostByte(c) {
				b.WriteByte(c)
				continue
			}
			b.Write([]byte{'\\', '0' + c/100, '0' + c/10%10, '0' + c%10})
		}
		b.WriteByte('.')
	}
	return b.String()
}

// typeName reports the type's mnemonic, or TYPE123 (RFC 3597).
func (q *query) typeName() string {
	switch {
	case q.name == nil:
		return ""
	case q.qtype == dns.TypeA:
		return "A"
	case q.qtype == dns.TypeAAAA:
		return "AAAA"
	}
	return dns.Type(q.qtype).String()
}
