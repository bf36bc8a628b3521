package mmsg

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// open listens on addr and reads in batches.
func open(t *testing.T, network, addr string) (*net.UDPConn, *Socket) {
	t.Helper()
	pc, err := net.ListenPacket(network, addr)
	if err != nil {
		t.Skip(err) // no IPv6 here
	}
	t.Cleanup(func() { _ = pc.Close() })
	s, err := Open(pc.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	return pc.(*net.UDPConn), s
}

func dial(t *testing.T, to string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "udp", to)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	return c
}

// Each packet is answered from the address that it was sent to: a connected client
// hears nothing else.
func TestEcho(t *testing.T) {
	for _, tt := range []struct{ network, listen, ask, client string }{
		{"udp4", "127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
		{"udp4", "0.0.0.0:0", "127.0.0.9", "127.0.0.1"},
		{"udp", "[::]:0", "127.0.0.9", "127.0.0.1"}, // IPv4 in IPv6
		{"udp", "[::]:0", "::1", "::1"},
		{"udp6", "[::1]:0", "::1", "::1"},
	} {
		t.Run(tt.network+" "+tt.listen+" "+tt.ask, func(t *testing.T) {
			pc, s := open(t, tt.network, tt.listen)
			_, port, _ := net.SplitHostPort(pc.LocalAddr().String())
			c := dial(t, net.JoinHostPort(tt.ask, port))
			b := NewBatch()
			for _, later := range []bool{false, true} {
				const packets = 5
				var got []string
				for i := range packets {
					if _, err := c.Write([]byte{byte('a' + i)}); err != nil {
						t.Fatal(err)
					}
				}
				for read := 0; read < packets; {
					n, err := s.Read(b)
					if err != nil {
						t.Fatal(err)
					}
					for i := range n {
						if from := b.Client(i); from != c.LocalAddr().(*net.UDPAddr).AddrPort() || from.Addr() != netip.MustParseAddr(tt.client) {
							t.Errorf("client %v", from)
						}
						reply := bytes.ToUpper(b.Packet(i))
						if !later {
							b.SetReply(i, append(b.Buffer(i), reply...))
							continue
						}
						back := b.Return(i)
						defer func() { s.Send(&back, nil) }() // nothing to send is no packet
						s.Send(&back, reply)
					}
					s.Write(b)
					read += n
				}
				buf := make([]byte, 10)
				for range packets {
					n, err := c.Read(buf)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(buf[:n]))
				}
				slices.Sort(got)
				if strings.Join(got, "") != "ABCDE" {
					t.Errorf("answers %q, later: %v", got, later)
				}
			}
		})
	}
}

// A reply that cannot be sent, a long packet and an empty one hold nothing up.
func TestOddPackets(t *testing.T) {
	pc, s := open(t, "udp4", "127.0.0.1:0")
	gone, c := dial(t, pc.LocalAddr().String()), dial(t, pc.LocalAddr().String())
	b := NewBatch()
	for i, send := range []struct {
		from net.Conn
		size int
		want int
	}{{gone, 7, 7}, {c, 0, 0}, {c, PacketBytes + 1, PacketBytes}, {c, 3, 3}} {
		if _, err := send.from.Write(make([]byte, send.size)); err != nil {
			t.Fatal(err)
		}
		n, err := s.Read(b)
		if err != nil || n != 1 || len(b.Packet(0)) != send.want {
			t.Fatalf("packet %d: %d packets, the first of %d bytes, %v", i, n, len(b.Packet(0)), err)
		}
	}
	// Two ways back: one that the kernel refuses, and behind it one that it takes.
	b.sizes[1], b.ways[1] = 1, b.ways[0]
	b.ways[0].name.Family = unix.AF_UNIX
	b.SetReply(0, []byte("refused"))
	b.SetReply(1, []byte("taken"))
	s.Write(b)
	buf := make([]byte, 10)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "taken" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if len(b.Packet(2)) != 0 || b.Client(0) != (netip.AddrPort{}) {
		t.Error("there is more than was read")
	}
}

func TestCloseEndsRead(t *testing.T) {
	pc, s := open(t, "udp4", "127.0.0.1:0")
	errs := make(chan error, 1)
	go func() {
		_, err := s.Read(NewBatch())
		errs <- err
	}()
	_ = pc.Close()
	select {
	case err := <-errs:
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Read goes on")
	}
}

// Whoever holds the open file, too, clears O_NONBLOCK: no call waits in the kernel,
// where nothing would wake it.
func TestNothingBlocks(t *testing.T) {
	pc, s := open(t, "udp4", "127.0.0.1:0")
	b, errs := NewBatch(), make(chan error, 1)
	go func() {
		var err error
		errs <- errors.Join(s.raw.Control(func(fd uintptr) {
			err = unix.SetNonblock(int(fd), false)
			if _, errno := call(unix.SYS_RECVMMSG, fd, b.headers[:]); errno != unix.EAGAIN {
				err = errors.Join(err, errno)
			}
		}), err)
	}()
	select {
	case err := <-errs:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a read of an empty socket waits")
		c := dial(t, pc.LocalAddr().String())
		for range Most { // so that it ends
			_, _ = c.Write([]byte("x"))
		}
		<-errs
	}
}

// Sockets that cannot tell where a packet was sent to are somebody else's.
func TestOpenRefuses(t *testing.T) {
	pc, _ := open(t, "udp4", "127.0.0.1:0")
	_ = pc.Close()
	if _, err := Open(pc); err == nil {
		t.Error("a closed socket was opened")
	}
	u, err := net.ListenPacket("unixgram", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if _, err := Open(u.(*net.UnixConn)); err == nil {
		t.Error("a unix socket was opened")
	}
}

// No control message from the kernel, however cut, is read past its end.
func FuzzReplyInfo(f *testing.F) {
	f.Add(unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: 1}), 80)
	f.Add(unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: 1}), 40)
	f.Add([]byte{1}, 7)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		var info [infoBytes]byte
		copy(info[:], in)
		if got := replyInfo(info[:], max(n, 0)); got < 0 || got > infoBytes {
			t.Fatal(got)
		}
	})
}
