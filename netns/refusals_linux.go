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

	"egressd/netns/capture"
	"egressd/netns/netlink"
)

// Constants of linux/netfilter/nfnetlink_log.h.
const (
	nfulPacket  = unix.NFNL_SUBSYS_ULOG << 8 // NFULNL_MSG_PACKET (0)
	nfulPayload = 9                          // NFULA_PAYLOAD
	nfulSeq     = 12                         // NFULA_SEQ
)

// countEvery is how often packets that have no record of their own are reported.
const countEvery = time.Second

// ServeRefusals reads refused packets from f, capture.Doors.Refusals, and calls
// fn with each, one at a time, until ctx ends or f fails. It closes f. If packets
// come faster than the rules record them, or than fn returns, the rest are
// refused all the same, and fn gets their number (Refusal.Count) once a second
// and at the end.
//
// Threat: a program hides a packet in a flood, so that it is not on record -> the
// record says that there were more, and how many. Left over: which addresses
// those packets named.
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
	raw, err := own.SyscallConn()
	if err != nil {
		return fmt.Errorf("read refused packets: %w", err)
	}
	t := &tally{fn: fn}
	buf := make([]byte, 64<<10)
	for {
		// Before ctx is checked: its end then finds this deadline, and moves it.
		if err := own.SetReadDeadline(t.due); err != nil {
			return fmt.Errorf("read refused packets: %w", err)
		}
		if ctx.Err() != nil {
			return t.finish(raw, buf)
		}
		n, err := receive(raw, buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case errors.Is(err, unix.ENOBUFS):
			t.overrun = true
		case err != nil:
			t.report()
			return fmt.Errorf("read refused packets: %w", err)
		}
		t.take(buf[:n])
		if !t.due.IsZero() && !time.Now().Before(t.due) {
			t.report()
		}
	}
}

// tally reports packets that are recorded, and counts those that are not.
type tally struct {
	fn      func(Refusal)
	next    [capture.CountGroup + 1]uint32 // the number of each group's next packet
	count   int64                          // not yet reported
	overrun bool                           // the kernel dropped records; the next number says how many
	due     time.Time                      // when count is to be reported; zero: there is none

	listed int       // packets with a record, up to capture.LogBurst
	last   time.Time // when the last of them came
}

// take adds one datagram of nfnetlink_log.
func (t *tally) take(b []byte) {
	for _, l := range parseLog(b) {
		if int(l.group) >= len(t.next) {
			continue
		}
		if gap := l.seq - t.next[l.group]; l.numbered && gap < 1<<31 {
			t.add(int64(gap))
			t.overrun = t.overrun && gap == 0
		}
		t.next[l.group] = l.seq + 1
		if l.group == capture.CountGroup {
			t.add(1)
			continue
		}
		t.listed = min(t.listed+1, capture.LogBurst)
		t.last = time.Now()
		if r, err := ParsePacket(l.payload); err == nil {
			t.fn(r)
		} else {
			t.add(1)
		}
	}
}

// add counts n packets without a record of their own.
func (t *tally) add(n int64) {
	if t.count += n; t.count > 0 && t.due.IsZero() {
		t.due = time.Now().Add(countEvery)
	}
}

// report reports what has been counted, if anything.
func (t *tally) report() {
	if t.count > 0 {
		t.fn(Refusal{Count: t.count})
	}
	t.count, t.due = 0, time.Time{}
}

// finish takes what the kernel has ready. It waits for what the kernel collects
// only if there may be something: packets go uncounted only while recorded ones
// come at full rate.
func (t *tally) finish(raw syscall.RawConn, buf []byte) error {
	end := time.Now()
	if t.listed == capture.LogBurst && time.Since(t.last) < 2*capture.CountFlush {
		end = end.Add(capture.CountFlush + capture.CountFlush/4)
	}
	for ok := true; ok; {
		if err := raw.Control(func(fd uintptr) { ok = t.readReady(int(fd), buf, time.Until(end)) }); err != nil {
			return fmt.Errorf("read refused packets: %w", err)
		}
	}
	if t.overrun {
		t.add(1) // at least
	}
	t.report()
	return nil
}

// readReady takes one datagram that is there within wait; false: there is none.
func (t *tally) readReady(fd int, buf []byte, wait time.Duration) bool {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, int(max(wait, 0).Milliseconds()))
	if n <= 0 {
		return errors.Is(err, unix.EINTR) && wait > 0
	}
	n, _, err = unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	if errors.Is(err, unix.ENOBUFS) {
		t.overrun = true
		return true
	}
	t.take(buf[:max(n, 0)])
	return err == nil && wait > -capture.CountFlush // programs that still run may go on sending
}

// receive reads one datagram, until the deadline of raw.
//
// Threat: the process that made the socket keeps a copy and clears O_NONBLOCK,
// which belongs to the open file and not to a descriptor: a read would block a
// thread -> no read here waits in the kernel, whatever the flag says. Nothing is
// left over.
func receive(raw syscall.RawConn, buf []byte) (n int, err error) {
	rerr := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN)
	})
	return max(n, 0), errors.Join(rerr, err)
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

// logged is one packet as nfnetlink_log reports it.
type logged struct {
	group    uint16
	seq      uint32 // among those of its group, from 0; numbered: it has one
	numbered bool
	payload  []byte // the start of the packet; nil: not asked for
}

// parseLog reads the packets in one datagram of nfnetlink_log, and leaves out
// what it can't read.
func parseLog(b []byte) []logged {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil
	}
	var packets []logged
	for _, m := range messages {
		if m.Header.Type != nfulPacket || len(m.Data) < 4 {
			continue
		}
		attrs, _ := netlink.Parse(m.Data[4:]) // of a list that is cut short, what is there
		l := logged{group: binary.BigEndian.Uint16(m.Data[2:]), payload: netlink.Find(attrs, nfulPayload)}
		if seq := netlink.Find(attrs, nfulSeq); len(seq) == 4 {
			l.seq, l.numbered = binary.BigEndian.Uint32(seq), true
		}
		packets = append(packets, l)
	}
	return packets
}
