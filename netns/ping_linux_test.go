package netns

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/nft"
)

// raw opens a raw socket, as only root of the namespace can.
func raw(t *testing.T, family, proto int) int {
	t.Helper()
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	tv := unix.NsecToTimeval(int64(200 * time.Millisecond))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		t.Fatal(err)
	}
	return fd
}

// ping reports whether an echo reply (RFC 792, RFC 4443) came.
func ping(t *testing.T, dst string) bool {
	t.Helper()
	a := netip.MustParseAddr(dst)
	if a.Is4() {
		fd := raw(t, unix.AF_INET, unix.IPPROTO_ICMP)
		echo := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // type, code, checksum
		if err := unix.Sendto(fd, echo, 0, &unix.SockaddrInet4{Addr: a.As4()}); err != nil {
			return false
		}
		return sees(fd, func(b []byte) bool { return len(b) > 20 && b[20] == 0 })
	}
	fd := raw(t, unix.AF_INET6, unix.IPPROTO_ICMPV6)
	echo := []byte{128, 0, 0, 0, 0, 0, 0, 0} // the kernel fills in the checksum
	if err := unix.Sendto(fd, echo, 0, &unix.SockaddrInet6{Addr: a.As16()}); err != nil {
		return false
	}
	return sees(fd, func(b []byte) bool { return len(b) > 0 && b[0] == 129 })
}

// sees reads until a packet is wanted or none comes.
func sees(fd int, wanted func([]byte) bool) bool {
	b := make([]byte, 1500)
	for range 16 {
		n, _, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			return false
		}
		if wanted(b[:n]) {
			return true
		}
	}
	return false
}

func TestPingIsNotAnswered(t *testing.T) {
	for _, dst := range []string{"8.8.8.8", "192.0.2.1", "2606:4700::1111"} {
		t.Run(dst, func(t *testing.T) {
			newWorld(t, nil)
			if ping(t, dst) {
				t.Error("answered")
			}
		})
		t.Run(dst+" without the rule", func(t *testing.T) {
			newWorld(t, func(r *nft.Table) {
				without("goto refuse")(r)
				r.Chains[len(r.Chains)-1].Base.Accept = true
			})
			if !ping(t, dst) {
				t.Error("not answered: another rule stops it, so the test above proves nothing")
			}
		})
	}
}
