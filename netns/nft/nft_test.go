package nft

import (
	"slices"
	"strings"
	"testing"
)

// Each word as nft lists it, and what it compares with. The kernel tests of
// package netns and package netns/pod hold both against the nft program; this
// one needs neither.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		part Part
		text string
		last string // the bytes of the final comparison
	}{
		{L4Proto("udp"), "meta l4proto udp", "\x11"},
		{Not(L4Proto("tcp")), "meta l4proto != tcp", "\x06"},
		{DPort("tcp", 0x1234), "tcp dport 4660", "\x12\x34"},
		{DPort("th", 53), "th dport 53", "\x00\x35"},
		{SYN(), "tcp flags syn / fin,syn,rst,ack", "\x02"},
		{To("127.0.0.0/8"), "ip daddr 127.0.0.0/8", "\x7f"},                        // whole bytes: as short as they are
		{To("224.0.0.0/4"), "ip daddr 224.0.0.0/4", "\xe0\x00\x00\x00"},            // others: behind a mask
		{To("255.255.255.255/32"), "ip daddr 255.255.255.255", "\xff\xff\xff\xff"}, // one address: without its length
		{To("fe80::/10"), "ip6 daddr fe80::/10", "\xfe\x80" + strings.Repeat("\x00", 14)},
		{To("ff00::/8"), "ip6 daddr ff00::/8", "\xff"},
		{ICMP("icmp", "destination-unreachable"), "icmp type destination-unreachable", "\x03"},
		{ICMP("icmpv6", "destination-unreachable"), "icmpv6 type destination-unreachable", "\x01"},
		{Payload(6, []byte{0, 3}), "@th,48,16 0x3", "\x00\x03"},
		{Meta("mark", 0x99), "meta mark 0x00000099", string(native32(0x99))},
		{Not(Meta("skuid", 1<<32-1)), "meta skuid != 4294967295", "\xff\xff\xff\xff"},
		{Loopback("oif"), `oif "lo"`, string(native32(1))},
		{Not(Loopback("oifname")), `oifname != "lo"`, "lo" + strings.Repeat("\x00", 14)},
		{Direction("reply"), "ct direction reply", "\x01"},
		{State("established,related"), "ct state established,related", "\x00\x00\x00\x00"},
		{ConnMark(0x10000000), "ct mark & 0x10000000 == 0x10000000", string(native32(0x10000000))},
	} {
		if got := c.part.String(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		last := c.part.exprs[len(c.part.exprs)-1]
		if last.name != "cmp" || string(last.attrs[2].Inner[0].Data) != c.last {
			t.Errorf("%s: the last step is %s of % x", c.text, last.name, last.attrs[2].Inner[0].Data)
		}
	}
}

// The mask of a prefix that is not whole bytes: one bit more lets out a
// neighbour's addresses, one less captures too little.
func TestMask(t *testing.T) {
	for prefix, want := range map[string]string{
		"127.0.0.0/8": "", "224.0.0.0/4": "\xf0\x00\x00\x00", "fe80::/10": "\xff\xc0" + strings.Repeat("\x00", 14),
	} {
		got := ""
		for _, e := range To(prefix).exprs {
			if e.name == "bitwise" {
				got = string(e.attrs[3].Inner[0].Data)
			}
		}
		if got != want {
			t.Errorf("%s: mask % x, want % x", prefix, got, want)
		}
	}
}

// Not must not change the part that it was made from: the two would otherwise
// share their last comparison, and one rule would mean its opposite.
func TestNotLeavesItsPart(t *testing.T) {
	p := L4Proto("tcp")
	n := Not(p)
	op := func(p Part) byte { return p.exprs[len(p.exprs)-1].attrs[1].Data[3] }
	if op(p) != equal || op(n) != unequal || p.String() != "meta l4proto tcp" {
		t.Errorf("%s: %d, %s: %d", p, op(p), n, op(n))
	}
}

// A misspelt word is a bug, never a rule that matches something else.
func TestUnknownWords(t *testing.T) {
	for name, use := range map[string]func(){
		"protocol":  func() { L4Proto("tpc") },
		"meta":      func() { Meta("uid", 0) },
		"device":    func() { Loopback("oiff") },
		"direction": func() { Direction("replies") },
		"state":     func() { State("established, related") },
		"icmp type": func() { ICMP("icmp", "nd-router-solicit") },
		"prefix":    func() { To("10.0.0.1") },
		"not":       func() { Not(Accept()) },
		"not state": func() { Not(State("new")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			use()
		}()
	}
}

func TestTableText(t *testing.T) {
	table := Table{Family: "netdev", Name: "x", Chains: []Chain{
		{Name: "a", Rules: []Rule{{Limit(100, 500), Log(2, 0), Return()}, {Log(1, 128)}, {Jump("b"), Reset()}}},
		{Name: "b", Base: &Base{Type: "filter", Hook: "egress", Devices: []string{"e0", "e1"}}},
		{Name: "c", Base: &Base{Type: "nat", Hook: "output", Priority: -100, Accept: true}, Rules: []Rule{{SetConnMark(1)}}},
	}}
	want := `table netdev x {
	chain a {
		limit rate over 100/second burst 500 packets log group 2 return
		log group 1 snaplen 128 queue-threshold 1
		jump b reject with tcp reset
	}

	chain b {
		type filter hook egress devices = { "e0", "e1" } priority filter; policy drop;
	}

	chain c {
		type nat hook output priority -100; policy accept;
		ct mark set ct mark | 0x00000001
	}
}
`
	if got := table.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	head := "table netdev x\ndelete table netdev x\n"
	if got := table.Script(); got != head+want {
		t.Errorf("script:\n%s", got)
	}
	if names := slices.Collect(func(yield func(string) bool) {
		for _, e := range table.Chains[0].Rules[0].exprs() {
			if !yield(e.name) {
				return
			}
		}
	}); !slices.Equal(names, []string{"limit", "log", "immediate"}) {
		t.Errorf("steps %v", names)
	}
}
