// Package rules says what a captured network namespace obeys:
//
//	fmt.Print(rules.Capture(53, 3129, true)) // as "nft list" prints it
//
// Nothing that ships imports it. Package capture holds the same rules encoded,
// so that pid 1 starts without the encoder: this package's test writes that
// file (go test ./netns/capture/rules -update) and compares it with what is
// here, and the tests of netns hold both against the nft program.
package rules

import (
	"slices"

	"egressd/netns/capture"
	"egressd/netns/nft"
)

// Capture is the table. dns and transparent are the ports of the gate's
// listeners; record adds the log of refusals.
//
// The kernel runs chain capture first (NAT), then leave, then, as every packet
// that is left goes through lo, arrive.
func Capture(dns, transparent uint16, record bool) nft.Table {
	refuse, discard := nft.Chain{Name: "refuse"}, nft.Chain{Name: "discard"}
	var chains []nft.Chain
	if record {
		chains = []nft.Chain{recordRefusals()}
		refuse.Rules = []nft.Rule{{nft.Jump("record")}}
		discard.Rules = []nft.Rule{{nft.Jump("record")}}
	}
	refuse.Rules = append(refuse.Rules, nft.Rule{nft.Reject()})
	discard.Rules = append(discard.Rules, nft.Rule{nft.Drop()})
	return nft.Table{Family: "inet", Name: "egressd", Chains: slices.Concat(chains, []nft.Chain{
		refuse, discard, redirect(dns, transparent), leave(), arrive(),
	})}
}

// recordRefusals records the packet, or, if there are too many to record each,
// that there was one.
func recordRefusals() nft.Chain {
	return nft.Chain{Name: "record", Rules: []nft.Rule{
		{nft.Limit(capture.LogPerSecond, capture.LogBurst), nft.Log(capture.CountGroup, 0), nft.Return()},
		{nft.Log(capture.LogGroup, capture.LogSnaplen)},
	}}
}

func redirect(dns, transparent uint16) nft.Chain {
	return nft.Chain{
		Name: "capture",
		Base: &nft.Base{Type: "nat", Hook: "output", Priority: -100, Accept: true},
		Rules: []nft.Rule{
			// DNS first, also to 127/8: whatever resolv.conf says is captured.
			{nft.DPort("udp", 53), nft.Redirect(dns)},
			{nft.DPort("tcp", 53), nft.Redirect(dns)},
			// Programs inside reach each other.
			{nft.To("127.0.0.0/8"), nft.Accept()},
			{nft.To("::1/128"), nft.Accept()},
			{nft.L4Proto("tcp"), nft.Redirect(transparent)},
		},
	}
}

// leave drops what no reply can be sent for: the sender sees EPERM.
func leave() nft.Chain {
	return nft.Chain{
		Name: "leave",
		Base: &nft.Base{Type: "filter", Hook: "output", Accept: true},
		Rules: []nft.Rule{
			{nft.Not(nft.Loopback("oifname")), nft.Goto("discard")},
			{nft.To("224.0.0.0/4"), nft.Goto("discard")},
			{nft.To("255.255.255.255/32"), nft.Goto("discard")},
			{nft.To("ff00::/8"), nft.Goto("discard")},
		},
	}
}

// arrive refuses on arrival rather than on departure: a reject on the way out
// makes sendto fail with EPERM, which event loops take for a fatal error; here
// the sender gets ECONNREFUSED.
func arrive() nft.Chain {
	return nft.Chain{
		Name: "arrive",
		Base: &nft.Base{Type: "filter", Hook: "input"},
		Rules: []nft.Rule{
			{nft.State("established,related"), nft.Accept()},
			// Our own rejects of what connection tracking can't follow.
			{nft.ICMP("icmp", "destination-unreachable"), nft.Accept()},
			{nft.ICMP("icmpv6", "destination-unreachable"), nft.Accept()},
			{nft.L4Proto("tcp"), nft.To("127.0.0.0/8"), nft.Accept()},
			{nft.L4Proto("udp"), nft.To("127.0.0.0/8"), nft.Accept()},
			{nft.L4Proto("tcp"), nft.To("::1/128"), nft.Accept()},
			{nft.L4Proto("udp"), nft.To("::1/128"), nft.Accept()},
			{nft.Goto("refuse")},
		},
	}
}
