package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inbound dials the pod from outside.
func (w *world) inbound(t testing.TB, network, addr string) (conn net.Conn, err error) {
	t.Helper()
	w.outside(t, func() error {
		d := net.Dialer{Timeout: patience}
		d.SetMultipathTCP(false)
		conn, err = d.DialContext(context.Background(), network, addr)
		return nil
	})
	return conn, err
}

// origin opens servers outside, for every address.
func (w *world) origin(t testing.TB, ports ...int) {
	t.Helper()
	w.outside(t, func() error {
		for _, port := range ports {
			lc := net.ListenConfig{}
			lc.SetMultipathTCP(false)
			ln, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf("[::]:%d", port))
			if err != nil {
				return err
			}
			greet(t, "origin", ln)
			for _, network := range []string{"udp4", "udp6"} {
				// Sockets of one family each: replies come from where the question went
				// only when a socket is bound to it.
				host := map[string]string{"udp4": far4, "udp6": "[" + far6 + "]"}[network]
				pc, err := lc.ListenPacket(context.Background(), network, fmt.Sprintf("%s:%d", host, port))
				if err != nil {
					return err
				}
				answer(t, "origin", pc)
			}
		}
		return nil
	})
}

// local opens a server of the agent's in the pod.
func local(t testing.TB, addr string) {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	ln, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	greet(t, "local", ln)
	pc, err := lc.ListenPacket(context.Background(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	answer(t, "local", pc)
}

// What must work does, in a captured pod.
func TestWorks(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	doors(t)
	serve(t, "admin", fmt.Sprintf("[::]:%d", testAdmin))
	w.origin(t, 443, 53)
	local(t, "[::1]:8080")
	local(t, "127.0.0.1:8080")
	local(t, podAddr4+":8080")
	local(t, "["+podAddr6+"]:8080")

	type dial func(network, addr string) (string, error)
	exempt := func(network, addr string) (string, error) {
		c, err := dialExempt(t, network, addr)
		if err != nil {
			return "", err
		}
		return hear(c)
	}
	visitor := func(network, addr string) (string, error) {
		c, err := w.inbound(t, network, addr)
		if err != nil {
			return "", err
		}
		return hear(c)
	}
	for _, c := range []struct {
		name    string
		dial    dial
		network string
		addr    string
		want    string
	}{
		{"captured", ask, "tcp", far4 + ":443", "gate " + far4 + ":443"},
		{"captured", ask, "tcp", "[" + far6 + "]:443", "gate [" + far6 + "]:443"},
		{"captured, at its own address", ask, "tcp", podAddr4 + ":8080", "gate " + podAddr4 + ":8080"},
		{"DNS", ask, "udp", far4 + ":53", "dns"},
		{"DNS", ask, "udp", "[" + far6 + "]:53", "dns"},
		{"DNS", ask, "udp", "127.0.0.53:53", "dns"},
		{"DNS", ask, "udp", "127.0.0.11:53", "dns"},
		{"DNS", ask, "udp", "[::1]:53", "dns"},
		{"DNS", ask, "tcp", far4 + ":53", "dns " + far4 + ":53"},
		{"DNS", ask, "tcp", "127.0.0.1:53", "dns 127.0.0.1:53"},
		{"among programs", ask, "tcp", "127.0.0.1:8080", "local 127.0.0.1:8080"},
		{"among programs", ask, "tcp", "[::1]:8080", "local [::1]:8080"},
		{"among programs", ask, "udp", "127.0.0.1:8080", "local"},
		{"among programs", ask, "udp", "[::1]:8080", "local"},
		{"a door by its address", ask, "tcp", "127.0.0.1:3129", "gate 127.0.0.1:3129"},
		{"egressd", exempt, "tcp", far4 + ":443", "origin " + far4 + ":443"},
		{"egressd", exempt, "tcp", "[" + far6 + "]:443", "origin [" + far6 + "]:443"},
		{"egressd", exempt, "udp", far4 + ":53", "origin"},
		{"egressd", exempt, "udp", "[" + far6 + "]:53", "origin"},
		{"egressd to a program", exempt, "tcp", "127.0.0.1:8080", "local 127.0.0.1:8080"},
		{"egressd to a program", exempt, "tcp", podAddr4 + ":8080", "local " + podAddr4 + ":8080"},
		{"egressd to itself", exempt, "tcp", "127.0.0.1:3131", "admin 127.0.0.1:3131"},
		{"egressd to itself", exempt, "tcp", "[::1]:3131", "admin [::1]:3131"},
		{"visitor", visitor, "tcp", podAddr4 + ":8080", "local " + podAddr4 + ":8080"},
		{"visitor", visitor, "tcp", "[" + podAddr6 + "]:8080", "local [" + podAddr6 + "]:8080"},
		{"visitor", visitor, "udp", podAddr4 + ":8080", "local"},
		{"visitor", visitor, "udp", "[" + podAddr6 + "]:8080", "local"},
		{"scraper", visitor, "tcp", podAddr4 + ":3131", "admin " + podAddr4 + ":3131"},
	} {
		said, err := c.dial(c.network, c.addr)
		if err != nil || said != c.want {
			t.Errorf("%s, %s %s: %q, %v; want %q", c.name, c.network, c.addr, said, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		dial dial
		addr string
	}{
		{"admin", ask, "127.0.0.1:3131"},
		{"admin", ask, "[::1]:3131"},
		{"admin", ask, "127.7.7.7:3131"},
		{"admin", ask, "[::ffff:127.0.0.1]:3131"},
		{"admin", ask, "0.0.0.0:3131"},
		{"admin", ask, podAddr4 + ":3131"},
		{"admin", ask, "[" + podAddr6 + "]:3131"},
	} {
		if said, err := c.dial("tcp", c.addr); err == nil && strings.HasPrefix(said, "admin") {
			t.Errorf("%s %s: %q", c.name, c.addr, said)
		}
	}
	serveUDP(t, "dns", podAddr4+":3130")
	serve(t, "gate", podAddr4+":3129")
	for addr, network := range map[string]string{podAddr4 + ":3129": "tcp", podAddr4 + ":3130": "udp"} {
		if said, err := visitor(network, addr); err == nil {
			t.Errorf("a visitor at a door for captured traffic: %q", said)
		}
	}
}

// The kernel may tell its link about the groups that its own addresses need.
func TestMembership(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	if _, err := join("ff02::1:ff4c:414b")(); err != nil {
		t.Fatal(err)
	}
	defer func() { unix.Close(kept[0]); kept = nil }()
	seen := contains6("\xff\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xffLAK")
	for deadline := time.Now().Add(2 * patience); ; {
		for _, f := range w.sniff.since(0) {
			if seen(f) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no report about the group")
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Pings within the pod and from outside are answered.
func TestPings(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		sysctl(t, "ipv4/ping_group_range", "0 0")
		if said, err := ping(addr)(); err != nil {
			t.Errorf("%s: %q, %v", addr, said, err)
		}
	}
	w.outside(t, func() error {
		sysctl(t, "ipv4/ping_group_range", "0 0")
		for _, addr := range []string{podAddr4 + ":0", "[" + podAddr6 + "]:0"} {
			if said, err := ping(addr)(); err != nil {
				t.Errorf("%s from outside: %q, %v", addr, said, err)
			}
		}
		return nil
	})
}

// atOnce is how long a refusal takes at most: the kernel sends a SYN that was lost
// for want of memory or time again after a second (RFC 6298 section 2.1); one that
// nobody answers, for two minutes.
const atOnce = 3 * time.Second

// Without egressd nothing is let through: what is captured is refused at once.
func TestWithoutEgressd(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	w.origin(t, 443, 53)
	n := w.sniff.count()
	for _, c := range [][2]string{
		{"tcp", far4 + ":443"},
		{"tcp", "[" + far6 + "]:443"},
		{"tcp", far4 + ":53"},
		{"udp", far4 + ":53"},
		{"udp", far4 + ":443"},
		{"udp", "[" + far6 + "]:443"},
		{"udp", "127.0.0.1:53"},
	} {
		start := time.Now()
		if said, err := ask(c[0], c[1]); !errors.Is(err, unix.ECONNREFUSED) {
			t.Errorf("%v: %q, %v", c, said, err)
		}
		if took := time.Since(start); took > atOnce {
			t.Errorf("%v: refused after %v", c, took)
		}
	}
	for _, f := range w.settle(t, n) {
		if !f.neighbours() && !probed(f) {
			t.Errorf("got out: %v", f)
		}
	}
}

// With --dns-port none.
func TestDNSRefused(t *testing.T) {
	w := newWorld(t)
	r := testRules()
	r.DNSPort = 0
	install(t, r)
	doors(t)
	local(t, "127.0.0.1:53") // not even a server of the agent's own: it would ask elsewhere
	w.origin(t, 53)
	n := w.sniff.count()
	for _, addr := range []string{far4 + ":53", "127.0.0.1:53", "[::1]:53", "[" + far6 + "]:53"} {
		for _, network := range []string{"tcp", "udp"} {
			if said, err := ask(network, addr); err == nil {
				t.Errorf("%s %s: %q", network, addr, said)
			}
		}
	}
	for _, f := range w.settle(t, n) {
		if !f.neighbours() && !probed(f) {
			t.Errorf("got out: %v", f)
		}
	}
}

// What egressd sent is delivered when it has closed its socket already: then
// the kernel sends on behalf of nobody.
func TestClosedSockets(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	var far net.Listener
	w.outside(t, func() (err error) {
		sysctl(t, "ipv4/tcp_rmem", "4096 8192 8192") // little room, so that most waits on this side
		far, err = net.Listen("tcp", "[::]:9000")
		return err
	})
	sysctl(t, "ipv4/tcp_rmem", "4096 8192 8192")
	for addr, ln := range map[string]net.Listener{
		far4 + ":9000":                         far,
		fmt.Sprintf("127.0.0.1:%d", testAdmin): listen(t, fmt.Sprintf("127.0.0.1:%d", testAdmin)),
	} {
		const much = 150 << 10
		closed, got := make(chan struct{}), make(chan int64, 1)
		go readLate(ln, closed, got)
		c, err := dialExempt(t, "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetWriteBuffer(much)
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write(make([]byte, much)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		close(closed)
		if n := <-got; n != much {
			t.Errorf("%s: %d of %d bytes arrived", addr, n, much)
		}
		ln.Close()
	}
}

// readLate reads everything once the other side has closed its socket, until
// when there was no room for most of it.
func readLate(ln net.Listener, closed <-chan struct{}, got chan<- int64) {
	c, err := ln.Accept()
	if err != nil {
		got <- -1
		return
	}
	defer c.Close()
	<-closed
	_ = c.SetDeadline(time.Now().Add(patience))
	n, _ := io.Copy(io.Discard, c)
	got <- n
}
