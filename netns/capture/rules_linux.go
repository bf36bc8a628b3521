package capture

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// encodedRule is one nf_tables message of the rules that package
// netns/capture/rules describes. They are encoded at build time, by that
// package's test, because no start should wait for the encoding.
type encodedRule struct {
	kind   uint16 // NFT_MSG_…
	record bool   // part of the record of refusals: left out without it
	port   int    // the offset in body of the transparent port; 0: it is not in there
	body   string // nfgenmsg and attributes
}

// rules is the transaction that captures the namespace: all of it or nothing.
func rules(transparent uint16, record bool) ([]netlink.Message, error) {
	var messages []netlink.Message
	for _, r := range encodedRules() {
		if r.record && !record {
			continue
		}
		m := netlink.Message{Kind: unix.NFNL_SUBSYS_NFTABLES<<8 | r.kind, Flags: unix.NLM_F_CREATE, Body: []byte(r.body)}
		if r.kind == unix.NFT_MSG_NEWRULE {
			m.Flags |= unix.NLM_F_APPEND
		}
		if r.port > 0 {
			binary.BigEndian.PutUint16(m.Body[r.port:], transparent)
		}
		messages = append(messages, m)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("no rules are encoded for this processor: %w", unix.EOPNOTSUPP)
	}
	return netlink.Batch(messages), nil
}

// install sends the transaction.
func install(c netlink.Conn, transparent uint16, record bool) error {
	messages, err := rules(transparent, record)
	if err != nil {
		return err
	}
	return netlink.First(c.Send(messages))
}
