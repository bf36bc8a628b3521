package capture

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The nfnetlink_log groups of what the rules refuse; the namespace is ours, so
// any will do.
const (
	LogGroup   = 1 // packets that are recorded
	CountGroup = 2 // packets beyond the rate: only how many is asked
)

// LogPerSecond packets are recorded at most, and LogBurst at once. Beyond that
// they are refused all the same, and counted.
const (
	LogPerSecond = 100
	LogBurst     = 500
)

// CountFlush is how long the kernel collects before it hands over what belongs
// to CountGroup.
const CountFlush = 200 * time.Millisecond

// LogSnaplen is how many bytes of each refused packet are recorded: the IPv6
// header, a few extensions, ports.
const LogSnaplen = 128

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

// Implementation constants of the socket: a burst fits, so that nothing of it is
// dropped where a reader is late.
const (
	logBuffer     = 512 // bytes that the kernel sets aside for one record
	receiveBuffer = 208 << 10
)

// countBuffer is how much the kernel collects for CountGroup before it hands it
// over: some hundred packets. A reader needs room for as much at once.
const countBuffer = 32 << 10

// OpenRefusals opens a socket that receives the packets of both groups in the
// calling thread's namespace. Binding needs CAP_NET_ADMIN; reading does not.
func OpenRefusals() (*os.File, error) {
	c, err := dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink_log: %w", err)
	}
	if err := c.Buffer(receiveBuffer); err != nil {
		c.Close()
		return nil, err
	}
	if err := first(c.send([]message{bindLog(), bindCount()})); err != nil {
		c.Close()
		return nil, fmt.Errorf("bind nfnetlink_log: %w", err)
	}
	return c.File("nflog"), nil
}

// bindLog asks for the starts of the packets of LogGroup, numbered.
func bindLog() message {
	return bind(LogGroup, copyMode(nfulCopyPacket, LogSnaplen),
		attr(nfulCfgBuffer, binary.BigEndian.AppendUint32(nil, logBuffer)))
}

// bindCount asks for as little as there is about the packets of CountGroup,
// numbered, and many at a time.
func bindCount() message {
	return bind(CountGroup, copyMode(nfulCopyMeta, 0),
		attr(nfulCfgBuffer, binary.BigEndian.AppendUint32(nil, countBuffer)),
		attr(nfulCfgTimeout, binary.BigEndian.AppendUint32(nil, uint32(CountFlush/(10*time.Millisecond)))),
		attr(nfulCfgQueue, binary.BigEndian.AppendUint32(nil, countBuffer)), // more than it holds
	)
}

func bind(group uint16, attrs ...[]byte) message {
	b := slices.Concat(
		nfgenmsg(unix.AF_UNSPEC, group),
		attr(nfulCfgCmd, []byte{nfulBind}),
		attr(nfulCfgFlags, binary.BigEndian.AppendUint16(nil, nfulSequence)),
	)
	return message{nfulConfig, unix.NLM_F_ACK, string(append(b, slices.Concat(attrs...)...))}
}

// copyMode is struct nfulnl_msg_config_mode: range, mode, padding.
func copyMode(mode byte, size uint32) []byte {
	return attr(nfulCfgMode, append(binary.BigEndian.AppendUint32(nil, size), mode, 0))
}

// nfgenmsg is struct nfgenmsg: family, version, resource.
func nfgenmsg(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}
