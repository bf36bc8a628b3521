package nft

import (
	"fmt"

	"egressd/netns/netlink"
)

// Accept ends this chain and those that called it. Later base chains still
// judge the packet.
func Accept() Part { return Part{"accept", "", []expr{verdict(verdictAccept, "")}} }

// Drop ends the packet without an answer.
func Drop() Part { return Part{"drop", "", []expr{verdict(verdictDrop, "")}} }

// Return goes back to the chain that jumped here.
func Return() Part { return Part{"return", "", []expr{verdict(verdictReturn, "")}} }

// Goto continues in chain and does not come back.
func Goto(chain string) Part { return Part{"goto", chain, []expr{verdict(verdictGoto, chain)}} }

// Jump runs chain and comes back.
func Jump(chain string) Part { return Part{"jump", chain, []expr{verdict(verdictJump, chain)}} }

// Redirect sends the connection to port on 127.0.0.1 or ::1.
func Redirect(port uint16) Part {
	return Part{"redirect to", fmt.Sprintf(":%d", port), []expr{immediate(big16(port)), redirectToRegister()}}
}

// Reject answers with ICMP's or ICMPv6's port unreachable.
func Reject() Part { return Part{"reject", "", []expr{rejection(rejectICMPX, icmpxPort)}} }

// Reset answers with a TCP reset.
func Reset() Part { return Part{"reject with tcp", "reset", []expr{rejection(rejectReset, 0)}} }

// SetConnMark sets one bit of the connection's mark.
func SetConnMark(bit uint32) Part {
	return Part{"ct mark set", fmt.Sprintf("ct mark | 0x%08x", bit), []expr{
		connection(ctMark), masked(native32(^bit), native32(bit)), setConnection(ctMark),
	}}
}

// Log sends the packet to the readers of an nfnetlink_log group: with snaplen,
// that many bytes of it and at once; with 0, as each reader asked.
func Log(group uint16, snaplen uint32) Part {
	attrs := []netlink.Attr{{Kind: 1, Data: big16(group)}} // NFTA_LOG_GROUP
	text := fmt.Sprintf("group %d", group)
	if snaplen > 0 { // NFTA_LOG_SNAPLEN, _QTHRESHOLD
		attrs = append(attrs, netlink.Number(3, snaplen), netlink.Attr{Kind: 4, Data: big16(1)})
		text += fmt.Sprintf(" snaplen %d queue-threshold 1", snaplen)
	}
	return Part{"log", text, []expr{{"log", attrs}}}
}
