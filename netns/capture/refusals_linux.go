package capture

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// LogGroup is the nfnetlink_log group of what the rules refuse; the namespace
// is ours, so any will do.
const LogGroup = 1

// LogSnaplen is how many bytes of each refused packet are recorded: the IPv6
// header, a few extensions, ports.
const LogSnaplen = 128

// Constants of linux/netfilter/nfnetlink_log.h.
const (
	nfulConfig     = unix.NFNL_SUBSYS_ULOG<<8 | 1 // NFULNL_MSG_CONFIG
	nfulCfgCmd     = 1                            // NFULA_CFG_CMD
	nfulCfgMode    = 2                            // NFULA_CFG_MODE
	nfulBind       = 1                            // NFULNL_CFG_CMD_BIND
	nfulCopyPacket = 2                            // NFULNL_COPY_PACKET
)

// OpenRefusals opens a socket that receives the packets of LogGroup in the
// calling thread's namespace. Binding needs CAP_NET_ADMIN; reading does not.
func OpenRefusals() (*os.File, error) {
	c, err := dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink_log: %w", err)
	}
	if err := first(c.send([]message{bindGroup()})); err != nil {
		c.close()
		return nil, fmt.Errorf("bind nfnetlink_log: %w", err)
	}
	return c.file("nflog"), nil
}

// bindGroup asks for the starts of the packets of LogGroup.
func bindGroup() message {
	// struct nfulnl_msg_config_mode: range, mode, padding.
	mode := append(binary.BigEndian.AppendUint32(nil, LogSnaplen), nfulCopyPacket, 0)
	return message{nfulConfig, unix.NLM_F_ACK, string(slices.Concat(
		nfgenmsg(unix.AF_UNSPEC, LogGroup),
		attr(nfulCfgCmd, []byte{nfulBind}),
		attr(nfulCfgMode, mode),
	))}
}

// nfgenmsg is struct nfgenmsg: family, version, resource.
func nfgenmsg(family byte, resource uint16) []byte {
	return binary.BigEndian.AppendUint16([]byte{family, unix.NFNETLINK_V0}, resource)
}
