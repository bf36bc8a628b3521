package netlink

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// Netfilter is struct nfgenmsg, with which the body of every nfnetlink message
// begins: an address family, and what the subsystem calls its resource.
func Netfilter(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}

// Batch wraps messages of nf_tables so that the kernel does all of them or
// nothing. Only the last one is acknowledged, after the commit; refusals come
// unasked. There must be a message.
func Batch(messages []Message) []Message {
	mark := Netfilter(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	all := make([]Message, 0, len(messages)+2)
	all = append(all, Message{Kind: unix.NFNL_MSG_BATCH_BEGIN, Body: mark})
	all = append(all, messages...)
	all[len(all)-1].Flags |= unix.NLM_F_ACK
	return append(all, Message{Kind: unix.NFNL_MSG_BATCH_END, Body: mark})
}

// NFTAbsent reports whether err means that this kernel lacks a part of nftables.
func NFTAbsent(err error) bool {
	for _, errno := range []unix.Errno{
		unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, // no nfnetlink
		unix.EINVAL, unix.EOPNOTSUPP, // no nf_tables, no NAT of family inet, no egress hook
		unix.ENOENT, // no expression or chain type of that name
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
