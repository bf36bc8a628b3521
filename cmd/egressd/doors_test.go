//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// way is one way to reach HOST:PORT through a daemon: nil when it works.
type way struct {
	name string
	try  func(t *testing.T, from, door, target, token string) error
}

func waysIn() []way {
	return []way{
		{"CONNECT", func(_ *testing.T, from, door, target, token string) error {
			return through(func() (*tunnel, error) { return connectFrom(from, door, target, token) })
		}},
		{"SOCKS5", func(_ *testing.T, from, door, target, token string) error {
			return through(func() (*tunnel, error) { return socks5(from, door, target, token) })
		}},
	}
}

func through(open func() (*tunnel, error)) error {
	c, err := open()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.ping()
}

func dialFrom(from, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: patience}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(patience))
}

func connectFrom(from, door, target, token string) (*tunnel, error) {
	c, err := dialFrom(from, door)
	if err != nil {
		return nil, err
	}
	return connectOver(c, target, token)
}

func socks5(from, door, target, token string) (*tunnel, error) {
	c, err := dialFrom(from, door)
	if err != nil {
		return nil, err
	}
	if err := socks5Over(c, target, token); err != nil {
		c.Close()
		return nil, err
	}
	return &tunnel{c, bufio.NewReader(c)}, nil
}

// errAuth is a door that wants other credentials.
var errAuth = errors.New("credentials wanted")

// socks5Over speaks RFC 1928 and RFC 1929.
func socks5Over(c net.Conn, target, token string) error {
	hello := []byte{5, 1, 0}
	if token != "" {
		hello = []byte{5, 1, 2}
	}
	var answer [2]byte
	if _, err := c.Write(hello); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	if answer[1] == 0xff {
		return errAuth
	}
	if token != "" {
		login := append([]byte{1, byte(len(token))}, token...)
		if _, err := c.Write(append(login, 1, 'x')); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, answer[:]); err != nil || answer[1] != 0 {
			return errAuth
		}
	}
	host, port, _ := net.SplitHostPort(target)
	n, _ := strconv.ParseUint(port, 10, 16)
	request := append([]byte{5, 1, 0, 3, byte(len(host))}, host...)
	if _, err := c.Write(binary.BigEndian.AppendUint16(request, uint16(n))); err != nil {
		return err
	}
	var reply [10]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return err
	}
	if reply[1] != 0 {
		return errDenied{"SOCKS " + strconv.Itoa(int(reply[1]))}
	}
	return nil
}

const (
	tokenA = "aaaaaaaaaaaaaaaaaaaaaaaa"
	tokenB = "bbbbbbbbbbbbbbbbbbbbbbbb"
)

// Which policy judges: a token that was sent, else the source, else the listener.
// Each policy allows one port that the others do not.
func TestWhoIsJudgedByWhat(t *testing.T) {
	ports := map[string]string{"default": echo(t), "team-a": echo(t), "team-b": echo(t)}
	args := []string{
		"--listen", "127.0.0.1:0", "--listen", "team-b@127.0.0.2:0",
		"--source", "127.0.0.3=team-a", "--source", "127.0.0.0/24=default", "--source", "127.0.1.0/24=team-b",
		"--tokens", write(t, "tokens", "team-a "+tokenA+"\nteam-b "+tokenB+"\n"),
	}
	for name, port := range ports {
		args = append(args, "--policy", name+"="+write(t, name+".yaml", policyFor("app.test", port)))
	}
	p := start(t, args...)
	first, second := p.addr("proxy"), strings.TrimPrefix(strings.Fields(p.wait("msg=listening", "policy=team-b"))[4], "addr=")
	for _, tt := range []struct{ from, door, token, want string }{
		{"127.0.0.1", first, "", "default"},
		{"127.0.0.3", first, "", "team-a"},      // the longest prefix
		{"127.0.1.7", first, "", "team-b"},      // ...
		{"127.9.9.9", first, "", "default"},     // the listener's
		{"127.9.9.9", second, "", "team-b"},     // ...
		{"127.0.0.3", second, "", "team-a"},     // a source beats the listener
		{"127.0.0.3", first, tokenB, "team-b"},  // a token beats both
		{"127.9.9.9", second, tokenA, "team-a"}, // ...
		{"127.0.0.3", first, "nobody-has-this-token-0000", ""},
	} {
		for _, way := range waysIn() {
			for name, port := range ports {
				err := way.try(t, tt.from, tt.door, "app.test:"+port, tt.token)
				if (err == nil) != (name == tt.want) {
					t.Errorf("%s from %s at %s with token %.4q to the port of %s: %v, want the policy %q", way.name, tt.from, tt.door, tt.token, name, err, tt.want)
				}
				if tt.want == "" && !errors.Is(err, errAuth) && !strings.Contains(fmt.Sprint(err), "407") {
					t.Errorf("%s with an unknown token: %v", way.name, err)
				}
			}
		}
	}
	if strings.Contains(p.events.String(), tokenA) || strings.Contains(p.log.String(), tokenA) {
		t.Error("a token is in the events or the log")
	}
	p.events.wait(t, `"reason":"not_authenticated"`)
}

// Where no policy is anybody's, clients have to say who they are.
func TestTokenRequired(t *testing.T) {
	port := echo(t)
	p := start(t, "--listen", "127.0.0.1:0", "--policy", "team-a="+write(t, "a.yaml", policyFor("app.test", port)),
		"--tokens", write(t, "tokens", "team-a "+tokenA+"\n"))
	door := p.addr("proxy")
	for _, way := range waysIn() {
		check(t, way.try(t, "", door, "app.test:"+port, tokenA))
		if err := way.try(t, "", door, "app.test:"+port, ""); !errors.Is(err, errAuth) && !strings.Contains(fmt.Sprint(err), "407") {
			t.Errorf("%s without a token: %v", way.name, err)
		}
	}
	c := must(dialFrom("", door))(t)
	defer c.Close()
	fmt.Fprintf(c, "CONNECT app.test:%s HTTP/1.1\r\nHost: app.test:%s\r\n\r\n", port, port)
	resp := must(http.ReadResponse(bufio.NewReader(c), nil))(t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusProxyAuthRequired || !strings.HasPrefix(resp.Header.Get("Proxy-Authenticate"), `Basic realm="egressd"`) {
		t.Errorf("%s %q", resp.Status, resp.Header.Get("Proxy-Authenticate"))
	}
}

// A token that is taken away takes its flows along; others live on.
func TestTokensReload(t *testing.T) {
	port := echo(t)
	tokens := write(t, "tokens", "team-a "+tokenA+"\nteam-a "+tokenB+"\n")
	p := start(t, "--listen", "127.0.0.1:0", "--policy", "team-a="+write(t, "a.yaml", policyFor("app.test", port)), "--tokens", tokens)
	door := p.addr("proxy")
	gone := must(connect(door, "app.test:"+port, tokenA))(t)
	defer gone.Close()
	kept := must(connect(door, "app.test:"+port, tokenB))(t)
	defer kept.Close()
	check(t, gone.ping())
	check(t, kept.ping())
	// Every way of writing it leaves the flows alone, while the tokens are there.
	for name, change := range ways {
		if name == "ConfigMap" {
			continue
		}
		change(t, tokens, fmt.Sprintf("# %s\nteam-a %s\nteam-a %s\n", name, tokenA, tokenB))
		p.signal(syscall.SIGHUP)
		check(t, gone.ping())
		check(t, kept.ping())
	}
	begin := time.Now()
	ways["rename"](t, tokens, "team-a "+tokenB+"\n")
	if _, closed := gone.closedWithin(patience); !closed {
		t.Fatal("the flow of a token that was taken away lives on")
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it was closed after %v", took)
	}
	check(t, kept.ping())
	if _, err := connect(door, "app.test:"+port, tokenA); err == nil || !strings.Contains(err.Error(), "407") {
		t.Errorf("the old token: %v", err)
	}
	ways["rename"](t, tokens, "nobody "+tokenA+"\n")
	p.wait("level=ERROR", "the tokens were rejected", "nobody")
	check(t, kept.ping())
	ways["rename"](t, tokens, "team-a "+tokenB+"\n")
	p.wait("level=INFO", "the tokens are in force", "tokens=1")
	check(t, through(func() (*tunnel, error) { return connect(door, "app.test:"+port, tokenB) }))
}

// Requests through the HTTP door are judged by the policy of whoever sends them,
// and the credentials do not travel on.
func TestHTTPDoorWithTokens(t *testing.T) {
	var seen http.Header
	origin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Clone() }))
	defer origin.Close()
	_, port, _ := net.SplitHostPort(origin.Listener.Addr().String())
	p := start(t, "--listen", "127.0.0.1:0", "--policy", "team-a="+write(t, "a.yaml", policyFor("app.test", port)),
		"--policy", write(t, "none.yaml", ""), "--tokens", write(t, "tokens", "team-a "+tokenA+"\n"))
	door := p.addr("proxy")
	ask := func(token string) int {
		c := must(dialFrom("", door))(t)
		defer c.Close()
		auth := ""
		if token != "" {
			auth = "Proxy-Authorization: Basic " + basic(token) + "\r\n"
		}
		fmt.Fprintf(c, "GET http://app.test:%s/ HTTP/1.1\r\nHost: app.test:%s\r\n%sConnection: close\r\n\r\n", port, port, auth)
		resp := must(http.ReadResponse(bufio.NewReader(c), nil))(t)
		resp.Body.Close()
		return resp.StatusCode
	}
	for token, want := range map[string]int{tokenA: 200, "": 403, tokenB: 407} {
		if got := ask(token); got != want {
			t.Errorf("token %.4q: %d, want %d", token, got, want)
		}
	}
	if seen == nil || seen.Get("Proxy-Authorization") != "" {
		t.Errorf("the origin saw %v", seen)
	}
}

// resolve asks the DNS door at addr, from an address, for the A records of name.
func resolve(t *testing.T, from, network, addr, name string) (dnsmessage.RCode, []netip.Addr) {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
	check(t, b.StartQuestions())
	check(t, b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}))
	query := must(b.Finish())(t)
	d := net.Dialer{Timeout: patience}
	ip := net.ParseIP(from)
	if d.LocalAddr = (&net.UDPAddr{IP: ip}); network == "tcp" {
		d.LocalAddr = &net.TCPAddr{IP: ip}
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	}
	c := must(d.Dial(network, addr))(t)
	defer c.Close()
	check(t, c.SetDeadline(time.Now().Add(patience)))
	must(c.Write(query))(t)
	buf := make([]byte, 4096)
	n := 0
	if network == "tcp" {
		must(io.ReadFull(c, buf[:2]))(t)
		n = must(io.ReadFull(c, buf[:binary.BigEndian.Uint16(buf)]))(t)
	} else {
		n = must(c.Read(buf))(t)
	}
	var m dnsmessage.Message
	check(t, m.Unpack(buf[:n]))
	var addrs []netip.Addr
	for _, r := range m.Answers {
		if a, ok := r.Body.(*dnsmessage.AResource); ok {
			addrs = append(addrs, netip.AddrFrom4(a.A))
		}
	}
	return m.RCode, addrs
}

// The DNS doors answer each client by its own policy, in either mode.
func TestDNSDoors(t *testing.T) {
	forward := "dns: {mode: forward}\nhosts:\n  b.test: 127.0.0.9\nallow:\n  - b.test\n"
	p := start(t, "--listen", "none", "--dns", "127.0.0.1:0", "--dns", "team-b@127.0.0.2:0", "--source", "127.0.0.3=team-b",
		"--policy", write(t, "a.yaml", "allow:\n  - a.test\n"), "--policy", "team-b="+write(t, "b.yaml", forward))
	first, second := p.addr("dns"), strings.TrimPrefix(strings.Fields(p.wait("msg=listening", "policy=team-b"))[4], "addr=")
	for _, tt := range []struct {
		from, door, name string
		want             string // first bytes of the answer; "": no such name
	}{
		{"127.0.0.1", first, "a.test", "198.18."},
		{"127.0.0.1", first, "b.test", ""},
		{"127.0.0.3", first, "a.test", ""},
		{"127.0.0.3", first, "b.test", "127.0.0.9"},
		{"127.0.0.1", second, "b.test", "127.0.0.9"},
		{"127.0.0.1", second, "a.test", ""},
	} {
		for _, network := range []string{"udp", "tcp"} {
			code, addrs := resolve(t, tt.from, network, tt.door, tt.name)
			switch {
			case tt.want == "" && code != dnsmessage.RCodeNameError, tt.want != "" && (len(addrs) != 1 || !strings.HasPrefix(addrs[0].String(), tt.want)):
				t.Errorf("%s over %s at %s from %s: %v %v, want %q", tt.name, network, tt.door, tt.from, code, addrs, tt.want)
			}
		}
	}
}

// Nobody reaches the daemon's own listeners through it, whatever a rule says.
func TestOwnListeners(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--dns", "127.0.0.1:0", "--transparent", "127.0.0.1:0",
		"--allow", "127.0.0.0/8:*", "--allow", "me.test:*", "--host", "me.test=127.0.0.1")
	door := p.addr("proxy")
	for _, kind := range []string{"proxy", "admin", "dns", "transparent"} {
		_, port, _ := net.SplitHostPort(p.addr(kind))
		for _, host := range []string{"127.0.0.1", "me.test"} {
			if c, err := connect(door, net.JoinHostPort(host, port), ""); err == nil {
				c.Close()
				t.Errorf("%s reaches the %s door", host, kind)
			}
		}
	}
	p.events.wait(t, `"reason":"proxy_loop_detected"`)
}
