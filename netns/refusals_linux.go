package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter/nfnetlink_log.h.
const (
	nfulPacket     = unix.NFNL_SUBSYS_ULOG<<8 | 0 // NFULNL_MSG_PACKET
	nfulConfig     = unix.NFNL_SUBSYS_ULOG<<8 | 1 // NFULNL_MSG_CONFIG
	nfulCfgCmd     = 1                            // NFULA_CFG_CMD
	nfulCfgMode    = 2                            // NFULA_CFG_MODE
	nfulBind       = 1                            // NFULNL_CFG_CMD_BIND
	nfulCopyPacket = 2                            // NFULNL_COPY_PACKET
	nfulPayload    = 9                            // NFULA_PAYLOAD
)

// openRefusals opens a socket that receives the packets of logGroup in the
// calling thread's namespace. Binding needs CAP_NET_ADMIN; reading does not.
func openRefusals() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink_log: %w", err)
	}
	if err := bindRefusals(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("bind nfnetlink_log: %w", err)
	}
	return os.NewFile(uintptr(fd), "nflog"), nil
}

func bindRefusals(fd int) error {
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	// struct nfulnl_msg_config_mode: range, mode, padding.
	mode := binary.BigEndian.AppendUint32(nil, logSnaplen)
	mode = append(mode, nfulCopyPacket, 0)
	attrs, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: nfulCfgCmd, Data: []byte{nfulBind}},
		{Type: nfulCfgMode, Data: mode},
	})
	if err != nil {
		return err
	}
	// struct nfgenmsg: family, version, group.
	head := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0}, logGroup)
	m := netlink.Message{
		Header: netlink.Header{
			Length: uint32(unix.SizeofNlMsghdr + len(head) + len(attrs)),
			Type:   nfulConfig,
			Flags:  netlink.Request | netlink.Acknowledge,
		},
		Data: append(head, attrs...),
	}
	b, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	if err := awaitAck(fd); err != nil {
		return err
	}
	return unix.SetNonblock(fd, true)
}

// awaitAck reads the answer to the configuration. The kernel has queued it by
// the time the request was sent, so this does not wait.
func awaitAck(fd int) error {
	buf := make([]byte, os.Getpagesize())
	n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	messages, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
			if code := int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
				return unix.Errno(-code)
			}
			return nil
		}
	}
	return errors.New("no answer from the kernel")
}

// ServeRefusals reports each refused packet read from f (Doors.Refusals) to
// fn, one at a time, until ctx ends or f fails. It closes f. When packets come
// faster than fn takes them the kernel drops the record, never the refusal.
func ServeRefusals(ctx context.Context, f *os.File, fn func(Refusal)) error {
	defer f.Close()
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS):
			continue
		case err != nil:
			return fmt.Errorf("read refused packets: %w", err)
		}
		for _, r := range parseLog(buf[:n]) {
			fn(r)
		}
	}
}

// parseLog reads the packets in one datagram of nfnetlink_log. What it can't
// read it leaves out.
func parseLog(b []byte) []Refusal {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil
	}
	var refusals []Refusal
	for _, m := range messages {
		if m.Header.Type != nfulPacket || len(m.Data) < 4 {
			continue
		}
		attrs, err := netlink.UnmarshalAttributes(m.Data[4:])
		if err != nil {
			continue
		}
		for _, a := range attrs {
			if a.Type != nfulPayload {
				continue
			}
			if r, err := ParsePacket(a.Data); err == nil {
				refusals = append(refusals, r)
			}
		}
	}
	return refusals
}
