package pod

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Attributes that x/sys does not have, of linux/netfilter/nf_tables.h.
const (
	hookDevices = 4 // NFTA_HOOK_DEVS
	deviceName  = 1 // NFTA_DEVICE_NAME
)

func batchMark(kind uint16) message {
	return message{kind: kind, body: nfgenmsg(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)}
}

// nfgenmsg is struct nfgenmsg: family, version, resource (big-endian).
func nfgenmsg(family byte, resource uint16) []byte {
	return []byte{family, unix.NFNETLINK_V0, byte(resource >> 8), byte(resource)}
}

func nftMessage(kind, flags uint16, family byte, attrs ...attr) message {
	return message{
		kind: unix.NFNL_SUBSYS_NFTABLES<<8 | kind, flags: flags,
		body: encodeAll(nfgenmsg(family, 0), attrs),
	}
}

// transaction wraps messages so that the kernel does all of it or nothing.
func transaction(messages []message) []message {
	all := append([]message{batchMark(unix.NFNL_MSG_BATCH_BEGIN)}, messages...)
	all[len(all)-1].flags |= unix.NLM_F_ACK
	return append(all, batchMark(unix.NFNL_MSG_BATCH_END))
}

// install replaces the table, whether it was there or not. Until the
// transaction is committed the old rules hold.
func (t table) install() []message {
	messages := t.remove()
	add := messages[0]
	messages = append(messages, add)
	for _, c := range t.chains { // all chains first: rules refer to them
		m := nftMessage(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, t.family, c.attrs()...)
		m.about = fmt.Sprintf("%s chain %s", t.familyName(), c.name)
		messages = append(messages, m)
	}
	for _, c := range t.chains {
		for _, r := range c.rules {
			m := nftMessage(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, t.family, r.attrs(c.name)...)
			m.about = fmt.Sprintf("rule %q", r)
			messages = append(messages, m)
		}
	}
	return messages
}

// remove deletes the table, and does nothing where there is none.
func (t table) remove() []message {
	name := text(unix.NFTA_TABLE_NAME, tableName)
	add := nftMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, t.family, name)
	del := nftMessage(unix.NFT_MSG_DELTABLE, 0, t.family, name)
	add.about = t.familyName() + " table"
	del.about = add.about
	return []message{add, del}
}

func (c chain) attrs() []attr {
	attrs := []attr{text(unix.NFTA_CHAIN_TABLE, tableName), text(unix.NFTA_CHAIN_NAME, c.name)}
	if c.base == nil {
		return attrs
	}
	hook := []attr{
		number(unix.NFTA_HOOK_HOOKNUM, c.base.hook),
		number(unix.NFTA_HOOK_PRIORITY, uint32(c.base.priority)), // two's complement
	}
	if len(c.base.devices) > 0 {
		devices := make([]attr, len(c.base.devices))
		for i, d := range c.base.devices {
			devices[i] = text(deviceName, d)
		}
		hook = append(hook, attr{kind: hookDevices, inner: devices, list: true})
	}
	policy := uint32(verdictDrop)
	if c.base.accept {
		policy = verdictAccept
	}
	return append(attrs,
		nest(unix.NFTA_CHAIN_HOOK, hook...),
		number(unix.NFTA_CHAIN_POLICY, policy),
		text(unix.NFTA_CHAIN_TYPE, c.base.kind),
	)
}

func (r rule) attrs(chain string) []attr {
	return []attr{
		text(unix.NFTA_RULE_TABLE, tableName),
		text(unix.NFTA_RULE_CHAIN, chain),
		r.expressions(),
	}
}

func (r rule) expressions() attr {
	exprs := r.exprs()
	elems := make([]attr, len(exprs))
	for i, e := range exprs {
		elems[i] = e.attr()
	}
	return attr{kind: unix.NFTA_RULE_EXPRESSIONS, inner: elems, list: true}
}
