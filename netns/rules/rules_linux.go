package rules

import (
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

// tableName is the one table of ours, family inet.
const tableName = "egressd"

// Implementation constants of the record of refusals.
const (
	logGroup     = capture.LogGroup
	logSnaplen   = capture.LogSnaplen
	logPerSecond = capture.LogPerSecond
	logBurst     = capture.LogBurst
)

// Set is a blueprint of rules: pure and deterministic. What the kernel can do
// appears only when it is applied.
type Set struct {
	Chains []Chain
}

// Chain is a list of rules that the kernel runs in order.
type Chain struct {
	Name  string
	Base  *Hook // nil: reached by goto only
	Rules []Rule
}

// Hook is where in the kernel a chain begins.
type Hook struct {
	kind     string
	hook     uint32
	priority int32
	Accept   bool // policy; false drops

	Text string // as nft lists it
}

// Rule is one line: as nft lists it, and as the kernel takes it.
type Rule struct {
	Text  string
	exprs []expr.Any
}

// Capture is what a captured namespace obeys. dns and transparent are the ports
// of the gate's listeners; record adds the log of refusals.
//
// The kernel runs chain capture first (NAT), then leave, then, as every packet
// that is left goes through lo, arrive.
func Capture(dns, transparent uint16, record bool) Set {
	refuse := []Rule{reject()}
	discard := []Rule{drop()}
	var chains []Chain
	if record {
		chains = []Chain{{Name: "record", Rules: []Rule{countRefusal(), logRefusal()}}}
		refuse = append([]Rule{visit("record")}, refuse...)
		discard = append([]Rule{visit("record")}, discard...)
	}
	return Set{Chains: append(chains, []Chain{
		{Name: "refuse", Rules: refuse},
		{Name: "discard", Rules: discard},
		{
			Name: "capture",
			Base: &Hook{
				kind: "nat", hook: unix.NF_INET_LOCAL_OUT, priority: -100, Accept: true,
				Text: "type nat hook output priority -100; policy accept;",
			},
			Rules: []Rule{
				// DNS first, also to 127/8: whatever resolv.conf says is captured.
				redirect("udp dport 53", dport(udp, 53), dns),
				redirect("tcp dport 53", dport(tcp, 53), dns),
				// Programs inside reach each other.
				accept("ip daddr 127.0.0.0/8", daddr4("127.0.0.0/8")),
				accept("ip6 daddr ::1", daddr6("::1/128")),
				redirect("meta l4proto tcp", l4proto(tcp), transparent),
			},
		},
		{
			// What no reply can be sent for: the sender sees EPERM.
			Name: "leave",
			Base: &Hook{
				kind: "filter", hook: unix.NF_INET_LOCAL_OUT, priority: 0, Accept: true,
				Text: "type filter hook output priority filter; policy accept;",
			},
			Rules: []Rule{
				jump(`oifname != "lo"`, notLoopback(), "discard"),
				jump("ip daddr 224.0.0.0/4", daddr4("224.0.0.0/4"), "discard"),
				jump("ip daddr 255.255.255.255", daddr4("255.255.255.255/32"), "discard"),
				jump("ip6 daddr ff00::/8", daddr6("ff00::/8"), "discard"),
			},
		},
		{
			// Refusing on arrival rather than on departure: a reject on the
			// way out makes sendto fail with EPERM, which event loops take
			// for a fatal error; here the sender gets ECONNREFUSED.
			Name: "arrive",
			Base: &Hook{
				kind: "filter", hook: unix.NF_INET_LOCAL_IN, priority: 0, Accept: false,
				Text: "type filter hook input priority filter; policy drop;",
			},
			Rules: []Rule{
				established(),
				// Our own rejects of what connection tracking can't follow.
				accept("icmp type destination-unreachable", icmpType(unix.IPPROTO_ICMP, 3)),
				accept("icmpv6 type destination-unreachable", icmpType(unix.IPPROTO_ICMPV6, 1)),
				accept("meta l4proto tcp ip daddr 127.0.0.0/8", l4proto(tcp), daddr4("127.0.0.0/8")),
				accept("meta l4proto udp ip daddr 127.0.0.0/8", l4proto(udp), daddr4("127.0.0.0/8")),
				accept("meta l4proto tcp ip6 daddr ::1", l4proto(tcp), daddr6("::1/128")),
				accept("meta l4proto udp ip6 daddr ::1", l4proto(udp), daddr6("::1/128")),
				Goto("refuse"),
			},
		},
	}...)}
}

// String is the Set as "nft list Set" prints it.
func (r Set) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", tableName)
	for i, c := range r.Chains {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
		if c.Base != nil {
			fmt.Fprintf(&b, "\t\t%s\n", c.Base.Text)
		}
		for _, l := range c.Rules {
			fmt.Fprintf(&b, "\t\t%s\n", l.Text)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}
