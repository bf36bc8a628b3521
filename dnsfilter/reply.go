package dnsfilter

import (
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

// outcome is what becomes of one query: the answer and the words of the event.
type outcome struct {
	rcode   int
	answers []dns.RR
	ede     uint16 // 0: none (code 0, "Other", is never sent)
	edeText string
}

// negative is an answer without records.
func negative(rcode int) outcome { return outcome{rcode: rcode} }

// addresses answers with those of addrs that q asked for.
func (q *query) addresses(addrs []netip.Addr, ttl uint32) outcome {
	var o outcome
	for _, a := range addrs {
		a = a.WithZone("")
		switch {
		case q.qtype == dns.TypeA && a.Unmap().Is4():
			v4 := a.Unmap().As4()
			o.answers = append(o.answers, &dns.A{Hdr: q.header(ttl), A: v4[:]})
		case q.qtype == dns.TypeAAAA && a.Is6() && !a.Is4In6():
			v6 := a.As16()
			o.answers = append(o.answers, &dns.AAAA{Hdr: q.header(ttl), AAAA: v6[:]})
		}
	}
	return o
}

func (q *query) header(ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: q.spelling(), Rrtype: q.qtype, Class: dns.ClassINET, Ttl: ttl}
}

// pack writes the answer to q. tcp lifts the size limit; over it TC is set.
func (q *query) pack(o outcome, tcp bool) []byte {
	m := dns.Msg{Compress: true}
	m.Id, m.Opcode = q.id, q.opcode
	m.Response, m.RecursionAvailable = true, true
	m.RecursionDesired, m.CheckingDisabled = q.rd, q.cd
	m.Rcode = o.rcode
	if q.asked {
		m.Question = []dns.Question{{Name: q.spelling(), Qtype: q.qtype, Qclass: q.qclass}}
	}
	m.Answer = o.answers
	if len(o.answers) == 0 && (o.rcode == dns.RcodeSuccess || o.rcode == dns.RcodeNameError) {
		m.Ns = []dns.RR{noSuchThing()}
	}
	if q.edns {
		m.Extra = []dns.RR{q.opt(o)}
	}
	size := q.udpSize
	if tcp {
		size = dns.MaxMsgSize
	}
	m.Truncate(size)
	wire, err := m.Pack()
	if err != nil {
		return q.bare(dns.RcodeServerFailure) // unreachable: all parts are ours
	}
	return wire
}

// opt is our own OPT record: our size, the client's DO bit (RFC 3225 section
// 3), at most one extended error. No option of the client is reflected.
func (q *query) opt(o outcome) *dns.OPT {
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
	opt.SetUDPSize(ourUDPBytes)
	if q.do {
		opt.SetDo()
	}
	if o.ede != 0 {
		opt.Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: o.ede, ExtraText: clip(o.edeText)}}
	}
	return opt
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
// (RFC 2308 section 3). It stands at the root because every name lies below it.
func noSuchThing() dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: deniedTTL},
		Ns:  "egressd.invalid.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: deniedTTL,
	}
}

// clip bounds s to maxEDEText bytes of whole characters.
func clip(s string) string {
	if len(s) <= maxEDEText {
		return s
	}
	n := maxEDEText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// seconds is d as a TTL: at least 1, at most ceiling.
func seconds(d, ceiling time.Duration) uint32 {
	return uint32(max(min(d, ceiling), time.Second) / time.Second)
}
