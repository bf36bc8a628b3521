package pod

import (
	"fmt"
	"strconv"
	"strings"
)

// table is the blueprint of one nftables table.
type table struct {
	family byte
	chains []chain
}

type chain struct {
	name  string
	base  *base // nil: reached from other chains only
	rules []rule
}

// base is where a chain is hooked into a packet's way. The zero policy drops.
type base struct {
	kind     string
	hook     uint32
	priority int32
	accept   bool
	devices  []string
}

// Families and hooks, linux/netfilter.h.
const (
	familyInet   = 1 // NFPROTO_INET
	familyNetdev = 5 // NFPROTO_NETDEV

	hookInput       = 1 // NF_INET_LOCAL_IN
	hookForward     = 2 // NF_INET_FORWARD
	hookOutput      = 3 // NF_INET_LOCAL_OUT
	hookPostrouting = 4 // NF_INET_POST_ROUTING

	hookEgress = 1 // NF_NETDEV_EGRESS, of family netdev
)

func (t table) familyName() string {
	if t.family == familyNetdev {
		return "netdev"
	}
	return "inet"
}

// script replaces the table by this one, whether it was there or not.
func (t table) script() string {
	name := t.familyName() + " " + tableName
	return fmt.Sprintf("table %s\ndelete table %s\n%s", name, name, t)
}

// String is the table as "nft list" prints it.
func (t table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s %s {\n", t.familyName(), tableName)
	for i, c := range t.chains {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\tchain %s {\n", c.name)
		if c.base != nil {
			fmt.Fprintf(&b, "\t\t%s\n", c.base.text(t.family))
		}
		for _, r := range c.rules {
			fmt.Fprintf(&b, "\t\t%s\n", r)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func (h base) text(family byte) string {
	hook := map[uint32]string{hookInput: "input", hookForward: "forward", hookOutput: "output", hookPostrouting: "postrouting"}[h.hook]
	where := ""
	if family == familyNetdev {
		hook = "egress"
		where = fmt.Sprintf(" device %q", strings.Join(h.devices, ""))
		if len(h.devices) > 1 {
			quoted := make([]string, len(h.devices))
			for i, d := range h.devices {
				quoted[i] = strconv.Quote(d)
			}
			where = " devices = { " + strings.Join(quoted, ", ") + " }"
		}
	}
	priority := "filter"
	if h.priority != 0 {
		priority = strconv.Itoa(int(h.priority))
	}
	policy := "drop"
	if h.accept {
		policy = "accept"
	}
	return fmt.Sprintf("type %s hook %s%s priority %s; policy %s;", h.kind, hook, where, priority, policy)
}
