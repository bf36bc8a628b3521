package netns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter/nfnetlink_log.h.
const (
	nfulPacket  = unix.NFNL_SUBSYS_ULOG << 8 // NFULNL_MSG_PACKET (0)
	nfulPayload = 9                          // NFULA_PAYLOAD
)

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
		if r, err := ParsePacket(attribute(m.Data[4:], nfulPayload)); err == nil {
			refusals = append(refusals, r)
		}
	}
	return refusals
}

// attribute reports the data of the first netlink attribute of that kind in b,
// nil when there is none or b is cut short before it (netlink(7)).
func attribute(b []byte, kind uint16) []byte {
	for len(b) >= unix.SizeofNlAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofNlAttr || size > len(b) {
			return nil
		}
		if binary.NativeEndian.Uint16(b[2:]) == kind {
			return b[unix.SizeofNlAttr:size]
		}
		b = b[min((size+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b)):]
	}
	return nil
}
