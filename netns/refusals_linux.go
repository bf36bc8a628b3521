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
	nfulPacket     = unix.NFNL_SUBSYS_ULOG << 8   // NFULNL_MSG_PACKET (0)
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
	c, err := dial(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open nfnetlink_log: %w", err)
	}
	if err := first(c.send([]netlink.Message{bindGroup()})); err != nil {
		c.close()
		return nil, fmt.Errorf("bind nfnetlink_log: %w", err)
	}
	return c.file("nflog"), nil
}

// bindGroup asks for the starts of the packets of logGroup.
func bindGroup() netlink.Message {
	// struct nfulnl_msg_config_mode: range, mode, padding.
	mode := append(binary.BigEndian.AppendUint32(nil, logSnaplen), nfulCopyPacket, 0)
	return netlink.Message{
		Header: netlink.Header{Type: nfulConfig, Flags: netlink.Acknowledge},
		Data: append(nfgenmsg(unix.AF_UNSPEC, logGroup), attributes(
			netlink.Attribute{Type: nfulCfgCmd, Data: []byte{nfulBind}},
			netlink.Attribute{Type: nfulCfgMode, Data: mode},
		)...),
	}
}

// ServeRefusals reports each refused packet read from f (Doors.Refusals) to
// fn, one at a time, until ctx ends or f fails. It closes f. When packets come
// faster than fn takes them the kernel drops the record, never the refusal.
func ServeRefusals(ctx context.Context, f *os.File, fn func(Refusal)) error {
	own, err := pollable(f)
	if err != nil {
		return errors.Join(fmt.Errorf("read refused packets: %w", err), f.Close())
	}
	defer own.Close()
	if err := f.Close(); err != nil {
		return fmt.Errorf("read refused packets: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = own.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for {
		n, err := own.Read(buf)
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

// pollable duplicates f as a file that has deadlines: a descriptor that came
// from another process may have been made blocking on the way.
func pollable(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var dup error
	err = raw.Control(func(old uintptr) {
		if fd, dup = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); dup == nil {
			dup = unix.SetNonblock(fd, true)
		}
	})
	if err = errors.Join(err, dup); err != nil {
		if fd >= 0 {
			unix.Close(fd)
		}
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
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
