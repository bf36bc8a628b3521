package pod

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns"
	"egressd/netns/nft"
)

// A raw socket can't speak within a connection of egressd's.
func TestInjection(t *testing.T) {
	for _, standing := range []string{allWalls, "capture"} {
		t.Run("standing "+standing, func(t *testing.T) {
			w := newWorld(t)
			apply(t, opened(testRules(), standing)...)
			w.origin(t, 53)
			c, err := dialExempt(t, "udp4", far4+":53")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("question")); err != nil {
				t.Fatal(err)
			}
			packet := ip4(podAddr4, far4, 17, udpHead(53))
			port := c.LocalAddr().(*net.UDPAddr).Port
			packet[20], packet[21] = byte(port>>8), byte(port)
			w.settle(t, 0)
			n := w.sniff.count()
			said, err := rawSend(unix.IPPROTO_RAW, far4+":0", packet)()
			out := attack{}.leaks(w.settle(t, n))
			switch {
			case standing == allWalls && (len(out) > 0 || err == nil):
				t.Errorf("%q, %v; got out: %v", said, err, out)
			case standing != allWalls && len(out) == 0:
				t.Errorf("did not get out although nothing stops it: %q, %v", said, err)
			}
		})
	}
}

// Nor within one of egressd's with itself.
func TestInjectionInside(t *testing.T) {
	newWorld(t)
	install(t, testRules())
	serveUDP(t, "admin", fmt.Sprintf("127.0.0.1:%d", testAdmin))
	c, err := dialExempt(t, "udp4", fmt.Sprintf("127.0.0.1:%d", testAdmin))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	packet := ip4("127.0.0.1", "127.0.0.1", 17, udpHead(testAdmin))
	port := c.LocalAddr().(*net.UDPAddr).Port
	packet[20], packet[21] = byte(port>>8), byte(port)
	if said, err := rawSend(unix.IPPROTO_RAW, "127.0.0.1:0", packet)(); !errors.Is(err, unix.EPERM) {
		t.Errorf("%q, %v", said, err)
	}
}

// What another namespace sends through this one, as containers within the pod
// would.
func TestForwarding(t *testing.T) {
	for _, standing := range []string{allWalls, "forward", "wall", "capture leave"} {
		t.Run("standing "+standing, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
				sysctl(t, name, "1")
			}
			inner := nestedPod(t)
			apply(t, opened(testRules(), standing)...)
			n := w.sniff.count()
			if err := inner(func() error {
				_ = sendOnly(far4 + ":443")
				_ = sendOnly("[" + far6 + "]:443")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			out := attack{}.leaks(w.settle(t, n))
			stops := strings.Contains(standing, "forward") || strings.Contains(standing, "wall")
			if stops != (len(out) == 0) {
				t.Errorf("got out: %v", out)
			}
		})
	}
}

func sendOnly(to string) error {
	fd, err := prepare(unix.SOCK_DGRAM, 0, to, nil)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("LEAK"), 0, sockaddr(to))
}

// Everything that was open before the capture ends with it, whether anything
// tracked connections then or not, and whoever speaks first.
func TestBeforeCapture(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		for _, serverFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("tracked %v server first %v", tracked, serverFirst), func(t *testing.T) {
				w := newWorld(t)
				if tracked {
					apply(t, tracking())
				}
				spoken := make(chan string, 8)
				peers := make(chan net.Conn, 1)
				w.outside(t, func() error {
					ln, err := net.Listen("tcp4", ":9443")
					if err != nil {
						return err
					}
					t.Cleanup(func() { ln.Close() })
					go heard(ln, peers, spoken)
					return nil
				})
				c, err := net.DialTimeout("tcp4", far4+":9443", patience)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				peer := <-peers
				if _, err := c.Write([]byte("before")); err != nil {
					t.Fatal(err)
				}
				if got := <-spoken; got != "before" {
					t.Fatalf("got %q", got)
				}
				install(t, testRules())
				if serverFirst {
					if _, err := peer.Write([]byte("more")); err != nil {
						t.Fatal(err)
					}
					_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
					_, _ = c.Read(make([]byte, 16))
				}
				n := w.sniff.count()
				for range 3 {
					_, _ = c.Write([]byte("LEAK"))
				}
				for _, f := range w.settle(t, n) {
					if strings.Contains(string(f), "LEAK") {
						t.Errorf("got out: %v", f)
					}
				}
				_ = c.SetReadDeadline(time.Now().Add(patience))
				if _, err := io.Copy(io.Discard, c); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, syscall.EPIPE) && err != nil {
					t.Errorf("the program is not told: %v", err)
				}
			})
		}
	}
}

// heard reports what the first connection says.
func heard(ln net.Listener, peers chan<- net.Conn, spoken chan<- string) {
	c, err := ln.Accept()
	if err != nil {
		return
	}
	peers <- c
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * patience))
	b := make([]byte, 64)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		spoken <- string(b[:n])
	}
}

// tracking is a table that does nothing but track connections.
func tracking() nft.Table {
	return nft.Table{Family: "inet", Name: tableName, Chains: []nft.Chain{{
		Name:  "track",
		Base:  &nft.Base{Type: "filter", Hook: "output", Accept: true},
		Rules: []nft.Rule{{nft.State("invalid"), nft.Accept()}},
	}}}
}

// nestedPod makes a namespace that is connected to this one alone, and reports
// how to run something in it.
func nestedPod(t *testing.T) func(func() error) error {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	var handle *os.File
	if err := ns.Do(func() (err error) {
		handle, err = os.Open("/proc/thread-self/ns/net")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	rtnl(t, addVeth("veth1", "eth0", handle))
	here := deviceIndex(t, "veth1")
	sysctl(t, "ipv6/conf/veth1/accept_dad", "0")
	rtnl(t, setUp(here), addAddr(here, "10.1.1.1/24"), addAddr(here, "fd00:11::1/64"))
	if err := ns.Do(func() error {
		sysctl(t, "ipv6/conf/eth0/accept_dad", "0")
		there := deviceIndex(t, "eth0")
		rtnl(t, setUp(loIndex), setUp(there), addAddr(there, "10.1.1.2/24"), addAddr(there, "fd00:11::2/64"),
			defaultVia("10.1.1.1"), defaultVia("fd00:11::1"))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ns.Do
}
