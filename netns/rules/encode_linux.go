package rules

import (
	"encoding/binary"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Apply installs the rules in the calling thread's namespace in one
// transaction: all of it or nothing.
func (r Set) Apply() error {
	messages, err := r.Encode()
	if err != nil {
		return err
	}
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range messages {
		messages[i].Header.Flags |= netlink.Request
	}
	if _, err := c.SendMessages(messages); err != nil {
		return err
	}
	_, err = c.Receive()
	return err
}

// Encode is the transaction as nfnetlink messages. Only the last rule asks for
// an acknowledgement, which comes after the commit; errors come unasked.
func (r Set) Encode() ([]netlink.Message, error) {
	messages := []netlink.Message{
		batchMark(unix.NFNL_MSG_BATCH_BEGIN),
		nftMessage(unix.NFT_MSG_NEWTABLE, netlink.Create, attributes(
			text(unix.NFTA_TABLE_NAME, tableName),
		)),
	}
	for _, c := range r.Chains { // all chains first: rules refer to them
		messages = append(messages, nftMessage(unix.NFT_MSG_NEWCHAIN, netlink.Create, c.encode()))
	}
	for _, c := range r.Chains {
		for _, l := range c.Rules {
			b, err := l.encode(c.Name)
			if err != nil {
				return nil, err
			}
			messages = append(messages, nftMessage(unix.NFT_MSG_NEWRULE, netlink.Create|netlink.Append, b))
		}
	}
	messages[len(messages)-1].Header.Flags |= netlink.Acknowledge
	return append(messages, batchMark(unix.NFNL_MSG_BATCH_END)), nil
}

func (c Chain) encode() []byte {
	attrs := []netlink.Attribute{
		text(unix.NFTA_CHAIN_TABLE, tableName),
		text(unix.NFTA_CHAIN_NAME, c.Name),
	}
	if c.Base == nil {
		return attributes(attrs...)
	}
	policy := uint32(nfDrop)
	if c.Base.Accept {
		policy = nfAccept
	}
	return attributes(append(attrs,
		nested(unix.NFTA_CHAIN_HOOK,
			number(unix.NFTA_HOOK_HOOKNUM, c.Base.hook),
			number(unix.NFTA_HOOK_PRIORITY, uint32(c.Base.priority)), // two's complement
		),
		number(unix.NFTA_CHAIN_POLICY, policy),
		text(unix.NFTA_CHAIN_TYPE, c.Base.kind),
	)...)
}

// Verdicts, linux/netfilter.h.
const (
	nfDrop   = 0
	nfAccept = 1
)

func (l Rule) encode(chain string) ([]byte, error) {
	elems := make([]netlink.Attribute, len(l.exprs))
	for i, e := range l.exprs {
		b, err := expr.Marshal(unix.NFPROTO_INET, e)
		if err != nil {
			return nil, err
		}
		elems[i] = netlink.Attribute{Type: unix.NLA_F_NESTED | unix.NFTA_LIST_ELEM, Data: b}
	}
	return attributes(
		text(unix.NFTA_RULE_TABLE, tableName),
		text(unix.NFTA_RULE_CHAIN, chain),
		nested(unix.NFTA_RULE_EXPRESSIONS, elems...),
	), nil
}

// nfgenmsg is struct nfgenmsg: family, version, resource.
func nfgenmsg(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}

func nftMessage(kind int, flags netlink.HeaderFlags, attrs []byte) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | kind), Flags: flags},
		Data:   append(nfgenmsg(unix.NFPROTO_INET, 0), attrs...),
	}
}

func batchMark(kind netlink.HeaderType) netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: kind}, Data: nfgenmsg(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)}
}

func text(kind uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: append([]byte(s), 0)}
}

func number(kind uint16, n uint32) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: binary.BigEndian.AppendUint32(nil, n)}
}

func nested(kind uint16, attrs ...netlink.Attribute) netlink.Attribute {
	return netlink.Attribute{Type: unix.NLA_F_NESTED | kind, Data: attributes(attrs...)}
}

func attributes(attrs ...netlink.Attribute) []byte {
	b, err := netlink.MarshalAttributes(attrs)
	if err != nil { // an attribute of 64 KiB
		panic("netns: bug: " + err.Error())
	}
	return b
}
