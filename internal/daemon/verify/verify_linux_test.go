package verify

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestPeerIn(t *testing.T) {
	if bigEndian() {
		t.Skip("the table is of a little-endian machine")
	}
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0C39 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 026433C6:A0B2 08080808:01BB 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   2: 0100007F:0C39 026433C6:A0B2 01 00000000:00000000 00:00000000 00000000     0        0 1 1
   3: 0000000000000000FFFF00000100007F:0C3A 0000000000000000FFFF0000026433C6:A0B3 01 0:0 0:0 0 0 0 1 1
   4: B80D0120000000000000000001000000:0C3B B80D0120000000000000000002000000:0016 01 0:0 0:0 0 0 0 1 1
   garbage
   5: XX:YY ZZ
`
	for local, want := range map[string]uint16{
		"198.51.100.2:41138":  3129,
		"198.51.100.2:41139":  3130,
		"[2001:db8::2]:22":    3131,
		"198.51.100.2:1":      0,
		"198.51.100.3:41138":  0,
		"8.8.8.8:443":         41138,
		"[2001:db8::2]:41138": 0,
	} {
		if got := peerIn(strings.NewReader(table), netip.MustParseAddrPort(local)); got != want {
			t.Errorf("%s: got %d, want %d", local, got, want)
		}
	}
}

func TestCounter(t *testing.T) {
	const snmp = `Icmp: InMsgs InErrors OutDestUnreachs
Icmp: 1 2 77
Tcp: RtoAlgorithm OutRsts
Tcp: 1 5
`
	for _, c := range []struct {
		table, name string
		want        uint64
	}{{"Icmp:", "OutDestUnreachs", 77}, {"Tcp:", "OutRsts", 5}, {"Tcp:", "Nothing", 0}, {"Udp:", "OutRsts", 0}} {
		if got := counter(snmp, c.table, c.name); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.table, c.name, got, c.want)
		}
	}
}

func TestVerdictOf(t *testing.T) {
	opt := func(code uint16, data ...byte) dnsmessage.Message {
		return dnsmessage.Message{Additionals: []dnsmessage.Resource{{
			Body: &dnsmessage.OPTResource{Options: []dnsmessage.Option{{Code: code, Data: data}}},
		}}}
	}
	for _, c := range []struct {
		name string
		in   dnsmessage.Message
		want bool
	}{
		{"blocked", opt(15, 0, 15), true},
		{"blocked, with words", opt(15, 0, 15, 'n', 'o'), true},
		{"censored", opt(15, 0, 16), false},
		{"cookie", opt(10, 0, 15), false},
		{"cut", opt(15, 0), false},
		{"none", dnsmessage.Message{}, false},
	} {
		if _, got := verdictOf(c.in); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if _, err := question(unlisted + "."); err != nil {
		t.Error(err)
	}
}
