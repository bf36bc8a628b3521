package nft

import (
	"fmt"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// Attributes that x/sys does not have, of linux/netfilter/nf_tables.h.
const (
	hookDevices = 4 // NFTA_HOOK_DEVS
	deviceName  = 1 // NFTA_DEVICE_NAME
)

// Replace installs tables in place of those of the same names, all in one
// transaction: until it is committed the old ones hold. c is a connection to
// NETLINK_NETFILTER. An error names the rule that the kernel refused, and
// [netlink.NFTAbsent] says whether it lacks a part.
func Replace(c netlink.Conn, tables ...Table) error {
	var messages []netlink.Message
	for _, t := range tables {
		messages = append(messages, t.removal()...)
		messages = append(messages, t.Messages()...)
	}
	return netlink.First(c.Send(netlink.Batch(messages)))
}

// Remove deletes the table. That there is none is not an error.
func (t Table) Remove(c netlink.Conn) error {
	return netlink.First(c.Send(netlink.Batch(t.removal())))
}

// Messages are what adds the table, its chains and its rules, without the
// transaction around them ([netlink.Batch]).
func (t Table) Messages() []netlink.Message {
	messages := []netlink.Message{t.addition()}
	for _, c := range t.Chains { // all chains first: rules refer to them
		m := t.message(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, t.chain(c)...)
		m.About = fmt.Sprintf("%s chain %s", t.Family, c.Name)
		messages = append(messages, m)
	}
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			m := t.message(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, t.rule(c.Name, r)...)
			m.About = fmt.Sprintf("rule %q", r)
			messages = append(messages, m)
		}
	}
	return messages
}

// removal adds the table before it deletes it, so that there is one to delete.
func (t Table) removal() []netlink.Message {
	del := t.message(unix.NFT_MSG_DELTABLE, 0, netlink.Text(unix.NFTA_TABLE_NAME, t.Name))
	del.About = t.Family + " table"
	return []netlink.Message{t.addition(), del}
}

func (t Table) addition() netlink.Message {
	add := t.message(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, netlink.Text(unix.NFTA_TABLE_NAME, t.Name))
	add.About = t.Family + " table"
	return add
}

func (t Table) message(kind, flags uint16, attrs ...netlink.Attr) netlink.Message {
	return netlink.Message{
		Kind: unix.NFNL_SUBSYS_NFTABLES<<8 | kind, Flags: flags,
		Body: netlink.Append(netlink.Netfilter(t.family(), 0), attrs...),
	}
}

func (t Table) family() byte {
	return lookUp(map[string]byte{"inet": unix.NFPROTO_INET, "netdev": unix.NFPROTO_NETDEV}, t.Family)
}

func (t Table) chain(c Chain) []netlink.Attr {
	attrs := []netlink.Attr{
		netlink.Text(unix.NFTA_CHAIN_TABLE, t.Name),
		netlink.Text(unix.NFTA_CHAIN_NAME, c.Name),
	}
	if c.Base == nil {
		return attrs
	}
	hook := []netlink.Attr{
		netlink.Number(unix.NFTA_HOOK_HOOKNUM, c.Base.hook()),
		netlink.Number(unix.NFTA_HOOK_PRIORITY, uint32(c.Base.Priority)), // two's complement
	}
	if len(c.Base.Devices) > 0 {
		devices := make([]netlink.Attr, len(c.Base.Devices))
		for i, d := range c.Base.Devices {
			devices[i] = netlink.Text(deviceName, d)
		}
		hook = append(hook, netlink.Attr{Kind: hookDevices, Inner: devices, List: true})
	}
	policy := uint32(verdictDrop)
	if c.Base.Accept {
		policy = verdictAccept
	}
	return append(attrs,
		netlink.Nest(unix.NFTA_CHAIN_HOOK, hook...),
		netlink.Number(unix.NFTA_CHAIN_POLICY, policy),
		netlink.Text(unix.NFTA_CHAIN_TYPE, c.Base.Type),
	)
}

func (h Base) hook() uint32 {
	return lookUp(map[string]uint32{
		"input": unix.NF_INET_LOCAL_IN, "forward": unix.NF_INET_FORWARD,
		"output": unix.NF_INET_LOCAL_OUT, "postrouting": unix.NF_INET_POST_ROUTING,
		"egress": unix.NF_NETDEV_EGRESS,
	}, h.Hook)
}

func (t Table) rule(chain string, r Rule) []netlink.Attr {
	exprs := r.exprs()
	elems := make([]netlink.Attr, len(exprs))
	for i, e := range exprs {
		elems[i] = e.attr()
	}
	return []netlink.Attr{
		netlink.Text(unix.NFTA_RULE_TABLE, t.Name),
		netlink.Text(unix.NFTA_RULE_CHAIN, chain),
		{Kind: unix.NFTA_RULE_EXPRESSIONS, Inner: elems, List: true},
	}
}
