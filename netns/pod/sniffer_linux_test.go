package pod

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sniffer keeps every frame that leaves the pod.
type sniffer struct {
	file *os.File
	done chan struct{}

	mu     sync.Mutex
	frames []frame
}

// frame is an Ethernet frame (IEEE 802.3): addresses, type, payload.
type frame []byte

func (f frame) kind() uint16    { return binary.BigEndian.Uint16(f[12:]) }
func (f frame) payload() []byte { return f[14:] }

const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherIPv6 = 0x86dd
)

func (f frame) String() string {
	return fmt.Sprintf("type %04x: %x", f.kind(), f.payload()[:min(60, len(f.payload()))])
}

// neighbours reports whether f is what neighbours say to each other: ARP,
// neighbour discovery (RFC 4861), membership reports for it (RFC 3810).
func (f frame) neighbours() bool {
	p := f.payload()
	switch {
	case f.kind() == etherARP:
		return true
	case f.kind() != etherIPv6 || len(p) < 48:
		return false
	case p[6] == unix.IPPROTO_ICMPV6:
		return p[40] >= 133 && p[40] <= 137
	default: // hop-by-hop options (8 bytes), then ICMPv6
		return p[6] == 0 && p[40] == unix.IPPROTO_ICMPV6 && p[48] == 143
	}
}

// startSniffer reads what arrives on the interface, in the calling thread's
// namespace.
func startSniffer(index uint32) (*sniffer, error) {
	all := int(binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL)))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, all)
	if err != nil {
		return nil, err
	}
	s := &sniffer{file: os.NewFile(uintptr(fd), "sniffer"), done: make(chan struct{})}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: int(index)}); err != nil {
		s.file.Close()
		return nil, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	go s.read()
	return s, nil
}

func (s *sniffer) read() {
	defer close(s.done)
	b := make([]byte, 70<<10)
	for {
		n, err := s.file.Read(b)
		if errors.Is(err, unix.ENETDOWN) {
			continue
		}
		if err != nil {
			return
		}
		if n >= 14 {
			s.mu.Lock()
			s.frames = append(s.frames, bytes.Clone(b[:n]))
			s.mu.Unlock()
		}
	}
}

func (s *sniffer) close() {
	s.file.Close()
	<-s.done
}

func (s *sniffer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.frames)
}

func (s *sniffer) since(n int) []frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames[n:]
}

// settle waits until everything that the pod has sent so far was seen, and
// reports what came since frame number n. The pod's answer to a probe of a
// closed port comes after everything else.
func (w *world) settle(t testing.TB, n int) []frame {
	t.Helper()
	const closed = 4 // unassigned
	var from uint16
	w.outside(t, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{198, 51, 100, 1}}); err != nil {
			return err
		}
		sa, err := unix.Getsockname(fd)
		if err != nil {
			return err
		}
		from = uint16(sa.(*unix.SockaddrInet4).Port)
		err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{198, 51, 100, 2}, Port: closed})
		if !errors.Is(err, unix.ECONNREFUSED) {
			return fmt.Errorf("a closed port answers %v", err)
		}
		return nil
	})
	isAnswer := func(f frame) bool {
		p := f.payload()
		return f.kind() == etherIPv4 && len(p) >= 40 && p[9] == unix.IPPROTO_TCP &&
			binary.BigEndian.Uint16(p[20:]) == closed && binary.BigEndian.Uint16(p[22:]) == from
	}
	deadline := time.Now().Add(patience)
	for {
		seen := w.sniff.since(n)
		for i, f := range seen {
			if isAnswer(f) {
				return append([]frame{}, seen[:i]...)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the sniffer does not see the pod's answers")
		}
		<-time.After(time.Millisecond)
	}
}
