//go:build linux

package hermetic

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/event/eventtest"
	"egressd/gate"
	"egressd/hermetic/command"
	"egressd/policy"
	"egressd/sandbox"
)

// fetch asks the gate for each URL, by hand, on connections of its own.
func fetch(ctx context.Context, c *command.Call) int {
	if c.Proxy == nil {
		fmt.Fprintln(c.Stdout, "no network")
		return 0
	}
	for _, address := range c.Args[1:] {
		conn, err := c.Proxy(ctx)
		if err != nil {
			fmt.Fprintln(c.Stdout, err)
			continue
		}
		host := strings.SplitN(address, "/", 4)[2]
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address, host)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil && line == "" {
			line = err.Error()
		}
		fmt.Fprintln(c.Stdout, strings.TrimSpace(line))
		conn.Close()
	}
	return 0
}

// crowd opens connections and keeps them, until there are no more.
func crowd(ctx context.Context, c *command.Call) int {
	for n := 0; ; n++ {
		if _, err := c.Proxy(ctx); err != nil {
			fmt.Fprintln(c.Stdout, n, err)
			return 0
		}
	}
}

// sink keeps events.
type sink struct {
	mu  sync.Mutex
	all []eventtest.Line
}

func (s *sink) Emit(e event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, eventtest.Of(e))
	return nil
}

func (s *sink) words() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, e := range s.all {
		if e.Type == "network.connected" {
			out = append(out, fmt.Sprintf("%s %s %s %s:%d %s", e.Isolation, e.Door, e.Decision, e.Host, e.Port, e.Reason))
		}
	}
	return out
}

// reaching is a backend whose policy allows host at the port of origin.
func reaching(t *testing.T, origin string) (*Backend, *sink, string) {
	t.Helper()
	u, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.ParseFile("test.yaml", []byte("allow: ['ok.test:"+u.Port()+"']\nhosts: {ok.test: [127.0.0.1]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	events := &sink{}
	b := &Backend{Gate: gate.Config{Policy: new(policy.Current), Resolver: new(dnsfilter.Resolver), Events: events}}
	b.Gate.Policy.Store(p)
	return b, events, u.Port()
}

// The one way out is the gate: what it allows arrives, what it denies does not,
// and both are events of this tier.
func TestGate(t *testing.T) {
	var asked sync.Map
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Host, true)
		_, _ = io.WriteString(w, "hello")
	}))
	defer origin.Close()
	b, events, port := reaching(t, origin.URL)
	o := run(t, b, sandbox.Spec{Argv: []string{"sh", "-c", "fetch http://ok.test:" + port + "/ http://evil.test/ http://127.0.0.1:" + port + "/"}})
	if o.out != "HTTP/1.1 200 OK\n"+blocked("evil.test:80: no rule allows this host; ask the user for --allow evil.test")+
		blocked("127.0.0.1:"+port+": the address is private, set aside for a special purpose or the gate's own machine, and no rule names it; ask the user for --allow 127.0.0.1:"+port) || o.code != 0 {
		t.Errorf("%+v", o)
	}
	if _, ok := asked.Load("127.0.0.1:" + port); ok {
		t.Error("a denied request arrived")
	}
	want := []string{"hermetic http allowed ok.test:" + port + " allowed", "hermetic http blocked evil.test:80 host_not_listed", "hermetic http blocked 127.0.0.1:" + port + " destination_ip_prohibited"}
	if got := events.words(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// blocked is the status line of a denial.
func blocked(why string) string { return "HTTP/1.1 403 Blocked by egressd: " + why + "\n" }

// Where nothing is allowed there is no gate to ask.
func TestNoGate(t *testing.T) {
	empty := &Backend{Gate: gate.Config{Policy: new(policy.Current)}}
	p, err := policy.Compile()
	if err != nil {
		t.Fatal(err)
	}
	empty.Gate.Policy.Store(p)
	for _, b := range []*Backend{{}, empty} {
		if o := run(t, b, sandbox.Spec{Script: "fetch http://ok.test/"}); o.out != "no network\n" {
			t.Errorf("%+v", o)
		}
	}
	asking := &Backend{Gate: gate.Config{Policy: empty.Gate.Policy, Events: &sink{}, Ask: func(context.Context, policy.Request, policy.Decision) bool { return false }}}
	if o := run(t, asking, sandbox.Spec{Script: "fetch http://ok.test/"}); o.out != blocked("ok.test:80: nobody approved it; ask the user for --allow ok.test") {
		t.Errorf("%+v", o)
	}
}

// A worker gets a bounded number of connections at a time.
func TestConnectionsAreBounded(t *testing.T) {
	b, _, _ := reaching(t, "http://127.0.0.1:1")
	if o := run(t, b, sandbox.Spec{Script: "crowd"}); o.out != "64 too many connections at once\n" {
		t.Errorf("%+v", o)
	}
}
