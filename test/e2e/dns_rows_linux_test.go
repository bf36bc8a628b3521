package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// dnsRow is one question and what the filter must say.
type dnsRow struct {
	name   string
	host   string
	qtype  uint16
	qclass uint16
	raw    []byte
	rcode  int
	addr   bool // exactly one address, from the synthetic range
	empty  bool // no error and no record
}

const (
	noError  = 0
	formErr  = 1
	nxDomain = 3
	notImp   = 4
	refused  = 5
	anyError = -2 // any RCODE but NOERROR, or no answer at all
)

var dnsRows = []dnsRow{
	{name: "allowed, A", host: exact, qtype: 1, rcode: noError, addr: true},
	{name: "allowed, A, in capitals", host: "EXACT.EXAMPLE.COM", qtype: 1, rcode: noError, addr: true},
	{name: "allowed, A, mixed case (0x20)", host: "eXaCt.eXaMpLe.cOm", qtype: 1, rcode: noError, addr: true},
	{name: "allowed, AAAA", host: exact, qtype: 28, rcode: noError, empty: true},
	{name: "allowed, HTTPS", host: exact, qtype: 65, rcode: noError, empty: true},
	{name: "allowed, SVCB", host: exact, qtype: 64, rcode: noError, empty: true},
	{name: "allowed on port 22 only", host: "ssh.example.com", qtype: 1, rcode: noError, addr: true},
	{name: "below a wildcard", host: "a.b.wild.example.com", qtype: 1, rcode: noError, addr: true},
	{name: "the apex of a wildcard", host: "wild.example.com", qtype: 1, rcode: nxDomain},
	{name: "unlisted, A", host: "unlisted.example.com", qtype: 1, rcode: nxDomain},
	{name: "unlisted, AAAA", host: "unlisted.example.com", qtype: 28, rcode: nxDomain},
	{name: "unlisted, HTTPS", host: "unlisted.example.com", qtype: 65, rcode: nxDomain},
	{name: "unlisted, TXT", host: "unlisted.example.com", qtype: 16, rcode: nxDomain},
	{name: "below a plain name", host: "x." + exact, qtype: 1, rcode: nxDomain},
	{name: "denied below a wildcard", host: "no.wild.example.com", qtype: 1, rcode: nxDomain},
	{name: "the parent", host: "example.com", qtype: 1, rcode: nxDomain},
	{name: "the root", host: "", qtype: 2, rcode: anyError},
	{name: "a reverse name", host: "1.0.77.11.in-addr.arpa", qtype: 12, rcode: nxDomain},
	{name: "an address as a name", host: "11.77.0.1", qtype: 1, rcode: anyError},
	{name: "an octal address as a name", host: "0177.0.0.1", qtype: 1, rcode: anyError},
	{name: "a NUL in a label", host: "exact\x00.example.com", qtype: 1, rcode: anyError},
	{name: "a dot inside a label", raw: dnsRaw("\x0dexact.example\x03com\x00\x00\x01\x00\x01"), rcode: anyError},
	{name: "a compression loop", raw: dnsRaw("\x05exact\xc0\x0c\x00\x01\x00\x01"), rcode: anyError},
	{name: "a name that runs past the end", raw: dnsRaw("\x3fexact"), rcode: anyError},
	{name: "no question", raw: []byte{0x13, 0x37, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, rcode: anyError},
	{name: "a header alone, one question promised", raw: []byte{0x13, 0x37, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, rcode: anyError},
	{name: "two questions", raw: twoQuestions(), rcode: anyError},
	{name: "class CHAOS", host: exact, qtype: 16, qclass: 3, rcode: anyError},
	{name: "class ANY", host: exact, qtype: 1, qclass: 255, rcode: anyError},
	{name: "a zone transfer", host: exact, qtype: 252, rcode: anyError},
	{name: "a dynamic update", raw: append([]byte{0x13, 0x37, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\x07example\x03com\x00\x00\x06\x00\x01"...), rcode: anyError},
	{name: "a notify", raw: append([]byte{0x13, 0x37, 0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0}, "\x07example\x03com\x00\x00\x06\x00\x01"...), rcode: anyError},
}

// dnsServers are whom the rows ask. Not the gate's own upstream: in a pod a
// question from a port that the gate used for its own to the same server a moment
// ago is refused, as connection tracking takes the two for one.
var dnsServers = []string{"9.9.9.10:53", "tcp://9.9.9.10:53"}

func dnsRaw(question string) []byte {
	return append([]byte{0x13, 0x37, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
}

// TestDNS asks every row over UDP and TCP. In synthetic mode no question leaves
// the machine, whatever the answer.
func TestDNS(t *testing.T) {
	needWorld(t)
	checkDNS(t, launchGate{})
}

func checkDNS(t *testing.T, at gate) {
	t.Helper()
	asEachOf(t, at.people(), func(t *testing.T, who person) {
		s := session{who: who, flags: names}
		for i, r := range dnsRows {
			for _, via := range dnsServers {
				s.jobs = append(s.jobs, job.Job{ID: fmt.Sprint(i, via), Op: "door.dns", Host: r.host, QType: r.qtype, QClass: r.qclass, Raw: r.raw, Via: via})
			}
		}
		before := at.watch()
		e := at.run(t, s)
		seen := before.end(t)
		for i, r := range dnsRows {
			for _, via := range dnsServers {
				r.check(t, via, e.results[fmt.Sprint(i, via)])
			}
		}
		if len(seen.questions) > 0 {
			t.Errorf("questions left the machine: %q", seen.questions)
		}
		for _, p := range seen.packets {
			t.Errorf("a packet left the sandbox: %s", p)
		}
		if n := e.blocked(func(ev map[string]any) bool { return ev["type"] == "dns.query" && ev["host"] == "unlisted.example.com" }); n < 8 {
			t.Errorf("8 denied questions for unlisted.example.com, %d events", n)
		}
	})
}

func (r dnsRow) check(t *testing.T, via string, res job.Result) {
	t.Helper()
	switch {
	case r.rcode == anyError && (res.Status != noError || len(res.Answers) == 0):
	case r.rcode != anyError && res.Status != r.rcode:
		t.Errorf("%s by %s: RCODE %d, want %d (%+v)", r.name, via, res.Status, r.rcode, res)
	case r.rcode == anyError, r.empty && len(res.Answers) > 0:
		t.Errorf("%s by %s: answered %v", r.name, via, res.Answers)
	case r.addr:
		synthetic := netip.MustParsePrefix("198.18.0.0/15")
		if len(res.Answers) != 1 || !synthetic.Contains(netip.MustParseAddr(strings.TrimSpace(res.Answers[0]))) {
			t.Errorf("%s by %s: answers %v, want one address from %s", r.name, via, res.Answers, synthetic)
		}
	}
}
