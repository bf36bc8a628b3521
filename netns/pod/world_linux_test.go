package pod

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns"
	"egressd/netns/netlink"
	"egressd/netns/nft"
)

// patience bounds what should be immediate.
const patience = 3 * time.Second

// Addresses of the tests' pod and of what is outside. Outside every address is
// answered.
const (
	podAddr4, outAddr4 = "198.51.100.2", "198.51.100.1"
	podAddr6, outAddr6 = "fd00:99::2", "fd00:99::1"
	far4, far6         = "8.8.8.8", "2001:db8::8"
)

const (
	testUser        = 65532
	testMark        = 0x4567
	testTransparent = 3129
	testDNS         = 3130
	testAdmin       = 3131
)

// world is a pod with an outside that answers to every address.
type world struct {
	out   *netns.NS
	sniff *sniffer
}

// testRules are the usual ones. Who can have no other user exempts a mark.
func testRules() Rules {
	r := Rules{TransparentPort: testTransparent, DNSPort: testDNS, Protected: []uint16{testAdmin}}
	if asRoot() {
		r.Users = []uint32{testUser}
	} else {
		r.Mark = testMark
	}
	return r
}

// newWorld moves the test's thread into a new pod, not captured yet.
func newWorld(t testing.TB) *world {
	t.Helper()
	freshNamespace(t)
	out, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	w := &world{out: out}
	var handle *os.File
	w.outside(t, func() (err error) {
		handle, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	defer handle.Close()
	rtnl(t, setUp(loIndex), addVeth("eth0", "out0", handle))
	w.outside(t, func() error {
		// Nobody here has duplicate addresses to detect, and tests shouldn't wait.
		sysctl(t, "ipv6/conf/out0/accept_dad", "0")
		sysctl(t, "ipv6/ip_nonlocal_bind", "1")
		index := deviceIndex(t, "out0")
		rtnl(t, setUp(loIndex), setUp(index),
			addAddr(index, outAddr4+"/24"), addAddr(index, outAddr6+"/64"), addAddr(index, "fe80::1/64"),
			localRoute("0.0.0.0/0"), localRoute("2001:db8::/32"))
		w.sniff, err = startSniffer(index)
		return err
	})
	t.Cleanup(w.sniff.close)
	sysctl(t, "ipv6/conf/eth0/accept_dad", "0")
	sysctl(t, "ipv6/conf/eth0/router_solicitations", "0")
	eth := deviceIndex(t, "eth0")
	rtnl(t, setUp(eth), addAddr(eth, podAddr4+"/24"), addAddr(eth, podAddr6+"/64"), defaultVia(outAddr4), defaultVia(outAddr6))
	return w
}

// outside runs fn in the outer namespace.
func (w *world) outside(t testing.TB, fn func() error) {
	t.Helper()
	if err := w.out.Do(fn); err != nil {
		t.Fatal(err)
	}
}

// apply installs tables as they are, for blueprints that tests have changed.
func apply(t testing.TB, tables ...nft.Table) {
	t.Helper()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := nft.Replace(c, tables...); err != nil {
		t.Fatal(err)
	}
}

// install installs r and requires that it worked completely.
func install(t testing.TB, r Rules) Result {
	t.Helper()
	result, err := r.Install()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Notes) > 0 {
		t.Logf("notes: %q", result.Notes)
	}
	return result
}

// asExempt makes a socket as egressd would: by its user, or with its mark.
func asExempt(socket func(control func(network, address string, c syscall.RawConn) error) error) error {
	if asRoot() {
		// The rules look at who opened the descriptor: setfsuid(2) of this
		// thread alone is enough, and Go has no call that changes all threads.
		unix.Syscall(unix.SYS_SETFSUID, testUser, 0, 0)
		defer unix.Syscall(unix.SYS_SETFSUID, 0, 0, 0)
		return socket(nil)
	}
	return socket(func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, testMark) }); cerr != nil {
			return cerr
		}
		return err
	})
}

// dialExempt dials as egressd would.
func dialExempt(t testing.TB, network, addr string) (conn net.Conn, err error) {
	t.Helper()
	err = asExempt(func(control func(string, string, syscall.RawConn) error) (err error) {
		d := net.Dialer{Timeout: patience, Control: control}
		d.SetMultipathTCP(false)
		conn, err = d.DialContext(t.Context(), network, addr)
		return err
	})
	return conn, err
}

func listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	var ln net.Listener
	err := asExempt(func(control func(string, string, syscall.RawConn) error) (err error) {
		lc := net.ListenConfig{Control: control}
		lc.SetMultipathTCP(false)
		ln, err = lc.Listen(context.Background(), "tcp", addr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serve greets every connection with who and the address that it asked for,
// and then says back what it hears. The doors are egressd's sockets.
func serve(t testing.TB, who, addr string) {
	t.Helper()
	greet(t, who, listen(t, addr))
}

func greet(t testing.TB, who string, ln net.Listener) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(2 * patience))
				fmt.Fprintf(c, "%s %s\n", who, destination(c))
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wg.Wait() })
}

// serveUDP answers every datagram with who.
func serveUDP(t testing.TB, who, addr string) {
	t.Helper()
	var pc net.PacketConn
	err := asExempt(func(control func(string, string, syscall.RawConn) error) (err error) {
		lc := net.ListenConfig{Control: control}
		pc, err = lc.ListenPacket(context.Background(), "udp", addr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	answer(t, who, pc)
}

func answer(t testing.TB, who string, pc net.PacketConn) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 2048)
		for {
			_, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo([]byte(who+"\n"), from)
		}
	}()
	t.Cleanup(func() { pc.Close(); <-done })
}

// doors opens egressd's listeners in the pod.
func doors(t testing.TB) {
	t.Helper()
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		serve(t, "gate", fmt.Sprintf("%s:%d", host, testTransparent))
		serve(t, "dns", fmt.Sprintf("%s:%d", host, testDNS))
		serveUDP(t, "dns", fmt.Sprintf("%s:%d", host, testDNS))
	}
}

// destination is SO_ORIGINAL_DST, else the local address.
func destination(c net.Conn) netip.AddrPort {
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return local
	}
	_ = raw.Control(func(fd uintptr) {
		const originalDst = 80 // SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST
		if local.Addr().Is4() {
			if m, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDst); err == nil {
				local = netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Multiaddr[4:8])), binary.BigEndian.Uint16(m.Multiaddr[2:4]))
			}
			return
		}
		if m, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst); err == nil {
			local = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), m.Addr.Port<<8|m.Addr.Port>>8)
		}
	})
	return local
}

// ask connects and reports the first line that the other end says.
func ask(network, addr string) (string, error) {
	d := net.Dialer{Timeout: patience}
	d.SetMultipathTCP(false)
	c, err := d.DialContext(context.Background(), network, addr)
	if err != nil {
		return "", err
	}
	return hear(c)
}

func hear(c net.Conn) (string, error) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if c.RemoteAddr().Network() == "udp" {
		if _, err := c.Write([]byte("hello")); err != nil {
			return "", err
		}
	}
	b := make([]byte, 512)
	n, err := c.Read(b)
	return strings.TrimSpace(string(b[:n])), err
}
