package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"
)

// Implementation constants of the load.
const (
	sockets       = 8
	maxWindow     = 256
	soRcvbufForce = 33                     // SO_RCVBUFFORCE of socket(7)
	patience      = 100 * time.Millisecond // without any answer, after which what is missing is asked again
	names         = 100                    // of a measurement whose names are not unique
)

// counts are the answers of one run.
type counts struct{ right, wrong, lost atomic.Int64 }

// ask keeps window questions of each of 8 sockets on their way to addr until ctx ends,
// and counts answers. serial makes unique names.
func ask(ctx context.Context, addr string, m measurement, window int, serial *atomic.Uint64) (*counts, error) {
	var n counts
	errs := make([]error, sockets)
	var wg sync.WaitGroup
	for i := range sockets {
		wg.Go(func() { errs[i] = askFrom(ctx, addr, m, window, serial, &n) })
	}
	wg.Wait()
	return &n, errors.Join(errs...)
}

// askFrom asks from one socket.
func askFrom(ctx context.Context, addr string, m measurement, window int, serial *atomic.Uint64, n *counts) error {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	pc := ipv4.NewPacketConn(conn.(*net.UDPConn))
	out, in := make([]ipv4.Message, window), make([]ipv4.Message, window)
	for i := range out {
		out[i].Buffers = [][]byte{nil}
		in[i].Buffers = [][]byte{make([]byte, 1500)}
	}
	waiting := 0
	for id := uint16(0); ctx.Err() == nil; {
		room := window - waiting
		for i := range room {
			out[i].Buffers[0] = question(out[i].Buffers[0][:0], id, m, serial.Add(1))
			id++
		}
		for sent := 0; sent < room; {
			k, err := pc.WriteBatch(out[sent:room], 0)
			if err != nil {
				return err
			}
			sent += k
		}
		waiting = window
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		k, err := pc.ReadBatch(in, 0)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			n.lost.Add(int64(waiting))
			waiting = 0
			continue
		}
		if err != nil {
			return err
		}
		for _, a := range in[:k] {
			if good(a.Buffers[0][:a.N], m) {
				n.right.Add(1)
			} else {
				n.wrong.Add(1)
			}
		}
		waiting = max(waiting-k, 0)
	}
	return nil
}

// good reports whether b is the answer that m is after.
func good(b []byte, m measurement) bool {
	if len(b) < 12 || b[2]&0x80 == 0 || b[3]&0xf != m.rcode {
		return false
	}
	return (binary.BigEndian.Uint16(b[6:]) > 0) == m.answers
}

// question appends the nth question of type A, with EDNS.
func question(b []byte, id uint16, m measurement, n uint64) []byte {
	b = append(b, byte(id>>8), byte(id), 1, 0, 0, 1, 0, 0, 0, 0, 0, 1)
	if !m.unique {
		n %= names
	}
	b = append(b, 9, 'n')
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	for label, rest := "", m.suffix; rest != ""; {
		label, rest = cut(rest)
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0, 0, 1, 0, 1, 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
}

func cut(name string) (label, rest string) {
	for i := range len(name) {
		if name[i] == '.' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

// serveUpstream answers every question for an address until ctx ends.
func serveUpstream(ctx context.Context, addr string) error {
	pc, err := net.ListenPacket("udp4", addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { pc.Close() })()
	// A queue for all that the load may have on its way twice. Only root gets one that long.
	if raw, err := pc.(*net.UDPConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soRcvbufForce, 8<<20) })
	}
	conn := ipv4.NewPacketConn(pc)
	ms := make([]ipv4.Message, 64)
	for i := range ms {
		ms[i].Buffers = [][]byte{nil}
	}
	for {
		for i := range ms {
			ms[i].Buffers[0] = append(ms[i].Buffers[0][:0], make([]byte, 1500)...)
		}
		n, err := conn.ReadBatch(ms, 0)
		if err != nil {
			return ctx.Err()
		}
		for i := range ms[:n] {
			ms[i].Buffers[0] = reply(ms[i].Buffers[0][:ms[i].N])
		}
		for sent := 0; sent < n; {
			k, err := conn.WriteBatch(ms[sent:n], 0)
			sent += max(k, 1) // what cannot be sent is lost, as on any network
			if err != nil && ctx.Err() != nil {
				return nil
			}
		}
	}
}

// reply turns a question into its answer, in place: 93.184.216.34 for A, nothing for
// other types, for a minute.
func reply(q []byte) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(q)
	if err != nil {
		return q[:0]
	}
	asked, err := p.Question()
	if err != nil {
		return q[:0]
	}
	end := 12 + len(asked.Name.String()) + 1 + 4
	h.Response, h.RecursionAvailable = true, true
	q[2], q[3] = 0x81, 0x80
	for i := 6; i < 12; i++ {
		q[i] = 0
	}
	q = q[:end]
	if asked.Type == dnsmessage.TypeA {
		q[7] = 1
		return append(q, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 93, 184, 216, 34)
	}
	q[9] = 1
	return append(q, 0, 0, 6, 0, 1, 0, 0, 0, 60, 0, 22, 0, 0, 0, 0, 0, 1, 0, 0, 14, 16, 0, 0, 2, 88, 0, 1, 81, 128, 0, 0, 0, 60)
}

// answers waits until addr answers a question that m is about.
func answers(ctx context.Context, addr string, m measurement, serial *atomic.Uint64) error {
	for {
		short, cancel := context.WithTimeout(ctx, patience)
		n, err := ask(short, addr, m, 1, serial)
		cancel()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s gives no right answer: %w, %w", addr, ctx.Err(), err)
		case err == nil && n.right.Load() > 0:
			return nil
		}
	}
}
