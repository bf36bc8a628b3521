package capture

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// Constants of linux/netfilter/nfnetlink_log.h.
const (
	nfulConfig     = unix.NFNL_SUBSYS_ULOG<<8 | 1 // NFULNL_MSG_CONFIG
	nfulCfgCmd     = 1                            // NFULA_CFG_CMD
	nfulCfgMode    = 2                            // NFULA_CFG_MODE
	nfulCfgBuffer  = 3                            // NFULA_CFG_NLBUFSIZ
	nfulCfgTimeout = 4                            // NFULA_CFG_TIMEOUT, in 1/100 s
	nfulCfgQueue   = 5                            // NFULA_CFG_QTHRESH
	nfulCfgFlags   = 6                            // NFULA_CFG_FLAGS
	nfulBind       = 1                            // NFULNL_CFG_CMD_BIND
	nfulCopyMeta   = 1                            // NFULNL_COPY_META
	nfulCopyPacket = 2                            // NFULNL_COPY_PACKET
	nfulSequence   = 1                            // NFULNL_CFG_F_SEQ: number the packets
)

// Implementation constants of the socket: a burst fits, so that a slow reader
// loses nothing of it.
const (
	logBuffer     = 512 // bytes that the kernel sets aside for one record
	receiveBuffer = 208 << 10
)

// countBuffer is how many bytes the kernel collects for CountGroup before it
// reports them: some hundred packets. A reader needs room for as much at once.
const countBuffer = 32 << 10

// OpenRefusals opens a socket that receives the packets of both groups in the
// calling thread's namespace. Binding needs CAP_NET_ADMIN; reading does not.
func OpenRefusals() (*os.File, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink_log: %w", err)
	}
	if err := c.Buffer(receiveBuffer); err != nil {
		c.Close()
		return nil, err
	}
	if err := netlink.First(c.Send([]netlink.Message{bindLog(), bindCount()})); err != nil {
		c.Close()
		return nil, fmt.Errorf("bind nfnetlink_log: %w", err)
	}
	return c.File("nflog"), nil
}

// bindLog asks for the starts of the packets of LogGroup, numbered.
func bindLog() netlink.Message {
	return bind(LogGroup, copyMode(nfulCopyPacket, LogSnaplen), netlink.Number(nfulCfgBuffer, logBuffer))
}

// bindCount asks for as little as there is about the packets of CountGroup,
// numbered, and many at a time.
func bindCount() netlink.Message {
	return bind(CountGroup, copyMode(nfulCopyMeta, 0),
		netlink.Number(nfulCfgBuffer, countBuffer),
		netlink.Number(nfulCfgTimeout, uint32(CountFlush/(10*time.Millisecond))),
		netlink.Number(nfulCfgQueue, countBuffer), // more than it holds
	)
}

func bind(group uint16, attrs ...netlink.Attr) netlink.Message {
	b := netlink.Append(netlink.Netfilter(unix.AF_UNSPEC, group),
		netlink.Attr{Kind: nfulCfgCmd, Data: []byte{nfulBind}},
		netlink.Attr{Kind: nfulCfgFlags, Data: binary.BigEndian.AppendUint16(nil, nfulSequence)},
	)
	return netlink.Message{Kind: nfulConfig, Flags: unix.NLM_F_ACK, Body: netlink.Append(b, attrs...)}
}

// copyMode is struct nfulnl_msg_config_mode: range, mode, padding.
func copyMode(mode byte, size uint32) netlink.Attr {
	return netlink.Attr{Kind: nfulCfgMode, Data: append(binary.BigEndian.AppendUint32(nil, size), mode, 0)}
}
