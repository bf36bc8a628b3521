package netns

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
	logPerSecond = 100 // beyond the rate packets are refused all the same, unrecorded
	logBurst     = 500
)

// ruleset is the blueprint of the capture rules: pure and deterministic. What
// the kernel can do appears only when it is applied.
type ruleset struct {
	chains []chain
}

type chain struct {
	name  string
	base  *hook // nil: reached by goto only
	rules []rule
}

type hook struct {
	kind     string
	hook     uint32
	priority int32
	accept   bool // policy; false drops

	text string // as nft lists it
}

// rule is one line: as nft lists it, and as the kernel takes it.
type rule struct {
	text  string
	exprs []expr.Any
}

// captureRules is what a captured namespace obeys. dns and transparent are
// the ports of the gate's listeners; record adds the log of refusals.
//
// The kernel runs chain capture first (NAT), then leave, then, as every packet
// that is left goes through lo, arrive.
func captureRules(dns, transparent uint16, record bool) ruleset {
	refuse := []rule{reject()}
	discard := []rule{drop()}
	if record {
		refuse = append([]rule{logRefusal()}, refuse...)
		discard = append([]rule{logRefusal()}, discard...)
	}
	return ruleset{chains: []chain{
		{name: "refuse", rules: refuse},
		{name: "discard", rules: discard},
		{
			name: "capture",
			base: &hook{
				kind: "nat", hook: unix.NF_INET_LOCAL_OUT, priority: -100, accept: true,
				text: "type nat hook output priority -100; policy accept;",
			},
			rules: []rule{
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
			name: "leave",
			base: &hook{
				kind: "filter", hook: unix.NF_INET_LOCAL_OUT, priority: 0, accept: true,
				text: "type filter hook output priority filter; policy accept;",
			},
			rules: []rule{
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
			name: "arrive",
			base: &hook{
				kind: "filter", hook: unix.NF_INET_LOCAL_IN, priority: 0, accept: false,
				text: "type filter hook input priority filter; policy drop;",
			},
			rules: []rule{
				established(),
				// Our own rejects of what connection tracking can't follow.
				accept("icmp type destination-unreachable", icmpType(unix.IPPROTO_ICMP, 3)),
				accept("icmpv6 type destination-unreachable", icmpType(unix.IPPROTO_ICMPV6, 1)),
				accept("meta l4proto tcp ip daddr 127.0.0.0/8", l4proto(tcp), daddr4("127.0.0.0/8")),
				accept("meta l4proto udp ip daddr 127.0.0.0/8", l4proto(udp), daddr4("127.0.0.0/8")),
				accept("meta l4proto tcp ip6 daddr ::1", l4proto(tcp), daddr6("::1/128")),
				accept("meta l4proto udp ip6 daddr ::1", l4proto(udp), daddr6("::1/128")),
				jump("", nil, "refuse"),
			},
		},
	}}
}

// String is the ruleset as "nft list ruleset" prints it.
func (r ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s {\n", tableName)
	for i, c := range r.chains {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\tchain %s {\n", c.name)
		if c.base != nil {
			fmt.Fprintf(&b, "\t\t%s\n", c.base.text)
		}
		for _, l := range c.rules {
			fmt.Fprintf(&b, "\t\t%s\n", l.text)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}
