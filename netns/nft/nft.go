// Package nft describes nftables rules as data, in nft's words and in the form
// that the kernel takes:
//
//	t := nft.Table{Family: "inet", Name: "example", Chains: []nft.Chain{{
//		Name: "leave",
//		Base: &nft.Base{Type: "filter", Hook: "output", Accept: true},
//		Rules: []nft.Rule{
//			{nft.DPort("tcp", 53), nft.Redirect(3130)},
//			{nft.To("127.0.0.0/8"), nft.Accept()},
//			{nft.L4Proto("udp"), nft.Reject()},
//		},
//	}}}
//	fmt.Print(t)                // as "nft list" prints it
//	err := nft.Replace(conn, t) // one transaction, through netlink
//	err = t.Verify(conn)        // exactly this is installed
//
// A rule is a list of parts, and every part knows both its text and its
// expressions, so the two cannot disagree. Tests hold them against the nft
// program. Only the words that this module needs are here; a word that is not
// known is a bug and panics.
package nft

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table is one nftables table. It is a plan: nothing happens until it is
// installed.
type Table struct {
	Family string // inet or netdev
	Name   string
	Chains []Chain
}

// Chain is a list of rules that the kernel evaluates in order.
type Chain struct {
	Name  string
	Base  *Base // nil: reached from other chains only
	Rules []Rule
}

// Base says where the kernel enters a chain.
type Base struct {
	Type     string   // filter or nat
	Hook     string   // input, forward, output, postrouting; egress in family netdev
	Priority int32    // smaller is earlier; 0 is "filter"
	Accept   bool     // the policy for what no rule ends; false drops
	Devices  []string // the interfaces of hook egress
}

// Rule is one line: conditions first, then what is done.
type Rule []Part

// Part is a piece of a rule.
type Part struct {
	key, value string
	exprs      []expr
}

// String is the part as nft writes it.
func (p Part) String() string { return strings.TrimSuffix(p.key+" "+p.value, " ") }

// String is the rule as nft writes it.
func (r Rule) String() string {
	words := make([]string, len(r))
	for i, p := range r {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// Script is the table as input for nft -f, which replaces the table or adds it.
func (t Table) Script() string {
	name := t.Family + " " + t.Name
	return fmt.Sprintf("table %s\ndelete table %s\n%s", name, name, t)
}

// String is the table as "nft list" prints it.
func (t Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s %s {\n", t.Family, t.Name)
	for i, c := range t.Chains {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\tchain %s {\n", c.Name)
		if c.Base != nil {
			fmt.Fprintf(&b, "\t\t%s\n", c.Base)
		}
		for _, r := range c.Rules {
			fmt.Fprintf(&b, "\t\t%s\n", r)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// String is the line that makes a chain a base chain, as nft writes it.
func (h Base) String() string {
	where := ""
	if len(h.Devices) == 1 {
		where = " device " + strconv.Quote(h.Devices[0])
	}
	if len(h.Devices) > 1 {
		quoted := make([]string, len(h.Devices))
		for i, d := range h.Devices {
			quoted[i] = strconv.Quote(d)
		}
		where = " devices = { " + strings.Join(quoted, ", ") + " }"
	}
	priority := "filter"
	if h.Priority != 0 {
		priority = strconv.Itoa(int(h.Priority))
	}
	policy := "drop"
	if h.Accept {
		policy = "accept"
	}
	return fmt.Sprintf("type %s hook %s%s priority %s; policy %s;", h.Type, h.Hook, where, priority, policy)
}

func (r Rule) exprs() []expr {
	var all []expr
	for _, p := range r {
		all = slices.Concat(all, p.exprs)
	}
	return all
}
