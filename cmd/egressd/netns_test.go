//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"egressd/netns"
	"egressd/test/iproute"
)

// asRoot runs this test again as root of namespaces of its own, so that it needs
// no other root. True: we are there.
func asRoot(t *testing.T) bool {
	t.Helper()
	const mark = "TEST_IN_USER_NAMESPACE=1"
	if os.Getenv("TEST_IN_USER_NAMESPACE") != "" {
		check(t, iproute.Up("lo"))
		return true
	}
	if out, err := exec.Command("unshare", "-Urmn", "true").CombinedOutput(); err != nil {
		t.Skipf("this machine allows no user namespaces: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "-Urmn", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// room is a network namespace with somebody in it, who gives it a path.
type room struct {
	*netns.NS
	path string
}

// newRoom makes a namespace where every address is the room's own, as launch and
// captured pods have it: nothing can leave.
func newRoom(t *testing.T) room {
	t.Helper()
	ns := must(netns.New())(t)
	t.Cleanup(func() { ns.Close() })
	sleeper := exec.Command("sleep", "600")
	check(t, ns.Do(func() error {
		return errors.Join(iproute.Up("lo"), iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add(), sleeper.Start())
	}))
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	return room{ns, fmt.Sprintf("/proc/%d/ns/net", sleeper.Process.Pid)}
}

// The doors are opened inside each namespace, TCP and UDP, explicit, captured and
// DNS; each namespace has its policy; dials leave from the daemon's own. When the
// daemon is killed nothing leads out.
func TestNetns(t *testing.T) {
	if !asRoot(t) {
		return
	}
	a, b := newRoom(t), newRoom(t)
	port := echo(t) // outside, on the loopback
	p := start(t, "--listen", "127.0.0.1:3128", "--transparent", "0.0.0.0:"+port, "--dns", "127.0.0.1:53",
		"--netns", a.path, "--netns", "team-b@"+b.path,
		"--policy", write(t, "a.yaml", policyFor("a.test", port)), "--policy", "team-b="+write(t, "b.yaml", policyFor("b.test", port)))
	if _, err := dial("tcp", "127.0.0.1:3128"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the door is open outside: %v", err)
	}
	for _, tt := range []struct {
		room room
		name string
		want bool
	}{{a, "a.test", true}, {a, "b.test", false}, {b, "b.test", true}, {b, "a.test", false}} {
		check(t, tt.room.Do(func() error {
			if err := once("127.0.0.1:3128", tt.name+":"+port); (err == nil) != tt.want {
				t.Errorf("explicit, %s: %v", tt.name, err)
			}
			code, addrs := resolve(t, "", "udp", "127.0.0.1:53", tt.name)
			if again, _ := resolve(t, "", "tcp", "127.0.0.1:53", tt.name); again != code {
				t.Errorf("DNS of %s: %v over UDP, %v over TCP", tt.name, code, again)
			}
			if !tt.want {
				if code != dnsmessage.RCodeNameError {
					t.Errorf("DNS of %s: %v %v", tt.name, code, addrs)
				}
				return nil
			}
			if len(addrs) != 1 {
				t.Fatalf("DNS of %s: %v %v", tt.name, code, addrs)
			}
			if err := plainOnce(net.JoinHostPort(addrs[0].String(), port)); err != nil {
				t.Errorf("captured, %s: %v", tt.name, err)
			}
			if err := plainOnce("127.0.0.7:" + port); err == nil {
				t.Errorf("captured: an address that no rule names was let through")
			}
			return nil
		}))
	}
	p.signal(syscall.SIGKILL)
	p.exit(patience)
	check(t, a.Do(func() error {
		for _, addr := range []string{"127.0.0.1:3128", "198.18.0.1:" + port, "192.0.2.1:443"} {
			if c, err := dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%s after the daemon's death: %v %v", addr, c, err)
			}
		}
		return nil
	}))
}

// plainOnce sends a line to addr itself, as a captured program does.
func plainOnce(addr string) error {
	c, err := dial("tcp", addr)
	if err != nil {
		return err
	}
	return through(func() (*tunnel, error) { return newTunnel(c), nil })
}
