package pod

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Connection tracking calls some segments invalid (which ones depends on the
// kernel; this one has flags that don't go together) and does not translate
// them. One must neither leave nor end the captured connection that it seems to
// belong to.
func TestInvalidSegment(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	doors(t)
	conn, err := net.DialTimeout("tcp4", far4+":443", patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	const fin, syn, ack = 1, 2, 16
	data := tcpHead(443, fin|syn|ack)
	sent, received := sequence(t, conn.(*net.TCPConn))
	binary.BigEndian.PutUint16(data, uint16(conn.LocalAddr().(*net.TCPAddr).Port))
	binary.BigEndian.PutUint32(data[4:], sent)
	binary.BigEndian.PutUint32(data[8:], received)
	binary.BigEndian.PutUint16(data[16:], checksum(data))
	n := w.sniff.count()
	said, err := rawSend(unix.IPPROTO_RAW, far4+":0", ip4(podAddr4, far4, unix.IPPROTO_TCP, data))()
	if out := (attack{}).leaks(w.settle(t, n)); len(out) > 0 || err == nil {
		t.Errorf("%q, %v; got out: %v", said, err, out)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Errorf("the connection has ended: %v", err)
	}
}

// checksum is that of a TCP segment from the pod to far4 (RFC 9293 section
// 3.1).
func checksum(segment []byte) uint16 {
	src, dst := netip.MustParseAddr(podAddr4).As4(), netip.MustParseAddr(far4).As4()
	all := slices.Concat(src[:], dst[:], []byte{0, unix.IPPROTO_TCP}, binary.BigEndian.AppendUint16(nil, uint16(len(segment))), segment)
	sum := uint32(0)
	for i := 0; i+1 < len(all); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(all[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// sequence reports the next sequence numbers of a connection, by stopping it
// for a moment (CAP_NET_ADMIN).
func sequence(t *testing.T, c *net.TCPConn) (sent, received uint32) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for _, step := range []struct {
			queue int
			seq   *uint32
		}{{1, &received}, {2, &sent}} { // TCP_RECV_QUEUE, TCP_SEND_QUEUE
			for _, o := range [][2]int{{unix.TCP_REPAIR, 1}, {unix.TCP_REPAIR_QUEUE, step.queue}} {
				if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, o[0], o[1]); err != nil {
					t.Fatal(err)
				}
			}
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ)
			if err != nil {
				t.Fatal(err)
			}
			*step.seq = uint32(n)
		}
		const offQuietly = -1 // TCP_REPAIR_OFF_NO_WP
		if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, offQuietly); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent, received
}
