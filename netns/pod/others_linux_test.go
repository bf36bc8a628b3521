package pod

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Docker's embedded DNS server: a listener at a port of its own on 127.0.0.11,
// and NAT that leads port 53 there. Only egressd may ask it.
func TestDockerDNS(t *testing.T) {
	w := newWorld(t)
	load(t, `table ip nat {
	chain DOCKER_OUTPUT {
		ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.11:41234
		ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:41234
	}
	chain OUTPUT {
		type nat hook output priority -100; policy accept;
		ip daddr 127.0.0.11 jump DOCKER_OUTPUT
	}
	chain POSTROUTING {
		type nat hook postrouting priority srcnat; policy accept;
		ip daddr 127.0.0.11 udp sport 41234 snat to :53
	}
}
`)
	serve(t, "docker", "127.0.0.11:41234")
	serveUDP(t, "docker", "127.0.0.11:41234")
	for _, network := range []string{"udp", "tcp"} {
		if said, err := ask(network, "127.0.0.11:41234"); err != nil {
			t.Fatalf("the way out that is to be closed is not open: %q, %v", said, err)
		}
	}
	install(t, testRules())
	doors(t)
	for _, network := range []string{"udp", "tcp"} {
		if said, err := ask(network, "127.0.0.11:53"); err != nil || said[:3] != "dns" {
			t.Errorf("a program, %s port 53: %q, %v", network, said, err)
		}
		if said, err := ask(network, "127.0.0.11:41234"); err == nil {
			t.Errorf("a program, %s to the server's own port: %q", network, said)
		}
		c, err := dialExempt(t, network, "127.0.0.11:53")
		if err != nil {
			t.Errorf("egressd, %s: %v", network, err)
			continue
		}
		if said, err := hear(c); err != nil || said[:6] != "docker" {
			t.Errorf("egressd, %s port 53: %q, %v", network, said, err)
		}
	}
	_ = w
}

// Istio redirects what leaves to its own proxy, user 1337, and what arrives.
// What egressd sends takes that way, and the agent comes to egressd first.
func TestIstio(t *testing.T) {
	if !asRoot() {
		t.Skip("two exempted users need two users") // the rules are the same as for one
	}
	w := newWorld(t)
	load(t, `table ip nat {
	chain OUTPUT {
		type nat hook output priority -100; policy accept;
		meta skuid 1337 return
		ip daddr 127.0.0.1 return
		meta l4proto tcp redirect to :15001
	}
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
		meta l4proto tcp redirect to :15006
	}
}
`)
	r := testRules()
	r.Users = append(r.Users, 1337)
	r.Protected = append(r.Protected, 15000, 15001)
	install(t, r)
	doors(t)
	serve(t, "mesh", "127.0.0.1:15001")
	serve(t, "mesh", "0.0.0.0:15006")
	w.origin(t, 443)
	if said, err := ask("tcp", far4+":443"); err != nil || said != "gate "+far4+":443" {
		t.Errorf("a program: %q, %v", said, err)
	}
	if said, err := ask("tcp", "127.0.0.1:15001"); err == nil {
		t.Errorf("a program at the mesh's own door: %q", said)
	}
	c, err := dialExempt(t, "tcp", far4+":443")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := hear(c); err != nil || said != "mesh "+far4+":443" {
		t.Errorf("egressd: %q, %v", said, err)
	}
	unix.Syscall(unix.SYS_SETFSUID, 1337, 0, 0)
	said, err := ask("tcp", far4+":443")
	unix.Syscall(unix.SYS_SETFSUID, 0, 0, 0)
	if err != nil || said != "origin "+far4+":443" {
		t.Errorf("the mesh: %q, %v", said, err)
	}
	visit, err := w.inbound(t, "tcp", podAddr4+":8080")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := hear(visit); err != nil || said != "mesh "+podAddr4+":8080" {
		t.Errorf("a visitor: %q, %v", said, err)
	}
}

// A namespace with nothing but lo is given routes, so that what is sent there
// comes to the doors.
func TestIsolated(t *testing.T) {
	freshNamespace(t)
	for i := range 2 { // also after a removal
		r := install(t, testRules())
		if !r.Isolated || !r.Changed {
			t.Errorf("round %d: %+v", i, r)
		}
		if r := install(t, testRules()); !r.Isolated || r.Changed {
			t.Errorf("round %d, again: %+v", i, r)
		}
		if i == 0 {
			if _, err := Remove(); err != nil {
				t.Fatal(err)
			}
			if said, err := ask("tcp", far4+":443"); err == nil {
				t.Errorf("after remove: %q", said)
			}
		}
	}
	doors(t)
	for _, c := range [][3]string{
		{"tcp", far4 + ":443", "gate " + far4 + ":443"},
		{"tcp", "[" + far6 + "]:443", "gate [" + far6 + "]:443"},
		{"udp", far4 + ":53", "dns"},
		{"udp", "[" + far6 + "]:53", "dns"},
	} {
		if said, err := ask(c[0], c[1]); err != nil || said != c[2] {
			t.Errorf("%v: %q, %v", c, said, err)
		}
	}
	group := "0 2147483647"
	if !asRoot() {
		group = "0 0"
	}
	sysctl(t, "ipv4/ping_group_range", group)
	for _, addr := range []string{far4 + ":0", "[" + far6 + "]:0"} {
		if said, err := ping(addr)(); err == nil {
			t.Errorf("a ping of %s is answered: %q", addr, said)
		}
	}
	for _, addr := range []string{far4 + ":443", "[" + far6 + "]:443"} {
		if said, err := ask("udp", addr); err == nil {
			t.Errorf("udp %s: %q", addr, said)
		}
	}
}

// Replacing the rules opens nothing: not one datagram gets out meanwhile.
func TestReplacingUnderFire(t *testing.T) {
	w := newWorld(t)
	install(t, testRules())
	var stop atomic.Bool
	var sent atomic.Int64
	fds := make([]int, 4)
	for i := range fds { // sockets are of this thread's namespace, goroutines may be anywhere
		fd, err := open(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	var wg sync.WaitGroup
	for i, fd := range fds {
		wg.Go(func() {
			for !stop.Load() {
				to := sockaddr(fmt.Sprintf("203.0.113.%d:%d", i+1, 1+sent.Load()%60000))
				_ = unix.Sendto(fd, []byte("LEAK"), 0, to)
				sent.Add(1)
			}
		})
	}
	n := w.sniff.count()
	other := testRules()
	other.Protected = nil
	deadline := time.Now().Add(2 * time.Second)
	rounds := 0
	for ; time.Now().Before(deadline) && rounds < 40; rounds++ {
		install(t, other)
		install(t, testRules())
	}
	stop.Store(true)
	wg.Wait()
	out := attack{}.leaks(w.settle(t, n))
	if len(out) > 0 || sent.Load() < 100 {
		t.Errorf("%d of %d datagrams got out in %d rounds: %v", len(out), sent.Load(), rounds, out[:min(3, len(out))])
	}
}

// Bulk through a captured connection, with and without the rules, and through
// one of egressd's own.
func BenchmarkThroughput(b *testing.B) {
	for _, rules := range []bool{false, true} {
		for _, exempt := range []bool{false, true} {
			b.Run(fmt.Sprintf("rules=%v/exempt=%v", rules, exempt), func(b *testing.B) {
				w := newWorld(b)
				if rules {
					install(b, testRules())
				}
				var ln net.Listener
				addr := far4 + ":9000"
				if exempt || !rules {
					w.outside(b, func() (err error) {
						ln, err = net.Listen("tcp4", ":9000")
						return err
					})
				} else {
					ln = listen(b, fmt.Sprintf("127.0.0.1:%d", testTransparent))
				}
				defer ln.Close()
				go discard(ln)
				dial := func() (net.Conn, error) { return net.Dial("tcp4", addr) }
				if exempt {
					dial = func() (net.Conn, error) { return dialExempt(b, "tcp4", addr) }
				}
				c, err := dial()
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				block := make([]byte, 64<<10)
				b.SetBytes(int64(len(block)))
				for b.Loop() {
					if _, err := c.Write(block); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func discard(ln net.Listener) {
	c, err := ln.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.Copy(io.Discard, c)
}

// Connections a second, likewise.
func BenchmarkConnect(b *testing.B) {
	for _, rules := range []bool{false, true} {
		b.Run(fmt.Sprintf("rules=%v", rules), func(b *testing.B) {
			w := newWorld(b)
			if rules {
				install(b, testRules())
			}
			w.outside(b, func() error {
				ln, err := net.Listen("tcp4", ":9000")
				if err != nil {
					return err
				}
				b.Cleanup(func() { ln.Close() })
				go func() {
					for {
						c, err := ln.Accept()
						if err != nil {
							return
						}
						c.Close()
					}
				}()
				return nil
			})
			for b.Loop() {
				c, err := dialExempt(b, "tcp4", far4+":9000")
				if err != nil {
					b.Fatal(err)
				}
				_ = c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		})
	}
}
