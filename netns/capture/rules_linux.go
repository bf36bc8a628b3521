package capture

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// encodedRule is one nf_tables message of the capture rules, as
// netns/rules describes them and its encoder writes them. It is
// written at build time because no start should wait for the writing.
type encodedRule struct {
	kind   uint16 // NFT_MSG_…
	record bool   // part of the record of refusals: left out without it
	port   int    // where in body the transparent port is; 0: nowhere
	body   string // nfgenmsg and attributes
}

// rules is the transaction that captures the namespace: all of it or nothing.
// Only the last rule asks for an acknowledgement, which comes after the commit;
// errors come unasked.
func rules(transparent uint16, record bool) []message {
	mark := string(nfgenmsg(unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES))
	messages := []message{{kind: unix.NFNL_MSG_BATCH_BEGIN, body: mark}}
	for _, r := range encodedRules() {
		if r.record && !record {
			continue
		}
		m := message{kind: unix.NFNL_SUBSYS_NFTABLES<<8 | r.kind, flags: unix.NLM_F_CREATE, body: r.body}
		if r.kind == unix.NFT_MSG_NEWRULE {
			m.flags |= unix.NLM_F_APPEND
		}
		if r.port > 0 {
			m.body = r.body[:r.port] + string(binary.BigEndian.AppendUint16(nil, transparent)) + r.body[r.port+2:]
		}
		messages = append(messages, m)
	}
	messages[len(messages)-1].flags |= unix.NLM_F_ACK
	return append(messages, message{kind: unix.NFNL_MSG_BATCH_END, body: mark})
}

// install sends a transaction of rules.
func install(c *conn, messages []message) error {
	if len(messages) <= 2 {
		return fmt.Errorf("no rules are encoded for this processor: %w", unix.EOPNOTSUPP)
	}
	return first(c.send(messages))
}
