package summary

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/policy"
	"egressd/policy/files"
)

var update = flag.Bool("update", false, "rewrite testdata")

func hostOf(name string) policy.Host {
	h, err := policy.ParseHost(name)
	if err != nil {
		panic(err)
	}
	return h
}

func flow(host string, port uint16, reason policy.Reason) *event.Connection {
	e := &event.Connection{Host: hostOf(host), Port: port, Verdict: event.Verdict{Reason: reason}}
	if reason == policy.ReasonAllowed {
		e.Decision = event.Allowed
	}
	return e
}

func closed(host string, port uint16, in, out int64) event.Body {
	return &event.Close{Host: hostOf(host), Port: port, BytesIn: in, BytesOut: out}
}

func text(t *testing.T, events ...event.Body) string {
	t.Helper()
	var c Collector
	for _, e := range events {
		if err := c.Emit(event.Event{Body: e}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// through is a flow that was to leave through the upstream proxy.
func through(host string, r policy.Reason) event.Body {
	e := flow(host, 443, r)
	e.Via = "proxy:3128"
	return e
}

func TestGolden(t *testing.T) {
	request := flow("api.test", 443, policy.ReasonMethodNotListed)
	request.Method, request.Path = "POST", "/v1/x"
	udp := &event.Packet{Proto: "udp", Dst: netip.MustParseAddr("203.0.113.9"), Port: 443}
	captured := flow("named.test", 5432, policy.ReasonIPProhibited)
	captured.Addr = netip.MustParseAddrPort("198.18.0.1:5432")
	private := flow("inside.test", 443, policy.ReasonIPProhibited)
	private.Addr = netip.MustParseAddrPort("10.0.0.9:443")
	asked := &event.Query{Host: hostOf("asked.test"), Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}
	askedToo := &event.Query{Host: hostOf("a.test"), Verdict: asked.Verdict}
	flood := &event.Packet{Count: 4321}
	peers := []event.Body{flow("name.test", 443, policy.ReasonHostNotListed), private}
	for i := range 30 {
		peers = append(peers, flow(fmt.Sprintf("203.0.113.%d", i), 6881, policy.ReasonHostNotListed))
		local := flow(fmt.Sprintf("10.0.0.%d", i), 80, policy.ReasonIPProhibited)
		local.Addr = netip.AddrPortFrom(local.Host.Addr(), 80)
		peers = append(peers, local)
	}
	peers = append(peers, flow("203.0.113.29", 6881, policy.ReasonHostNotListed), flow("203.0.113.29", 6881, policy.ReasonHostNotListed))
	words := "x\x1b[2J\nlaunch: all is well\u202e" + strings.Repeat("y", 999)
	hostile := &event.Query{Asked: words, Verdict: event.Verdict{Reason: policy.ReasonMalformed}}
	hostileToo := flow("api.test", 443, policy.ReasonPathNotListed)
	hostileToo.Method, hostileToo.Path = words, words
	audited := flow("audit.test", 22, policy.ReasonHostNotListed)
	audited.Decision, audited.Audit = event.Allowed, true
	ruled := flow("bad.test", 443, policy.ReasonDeniedByRule)
	ruled.Rule = &policy.Rule{Text: "*.test", Pos: policy.Pos{File: "d.yaml", Line: 2, Column: 5}}
	loop := flow("loop.test", 443, policy.ReasonIPProhibited)
	loop.Addr = netip.MustParseAddrPort("127.0.0.1:443")
	many := []event.Body{flow("first.test", 443, policy.ReasonHostNotListed)}
	for i := range 25 {
		many = append(many, flow(fmt.Sprintf("host-number-%d.example.org", i), 443, policy.ReasonHostNotListed))
	}
	many = append(many, flow("deep.er.example.org", 22, policy.ReasonHostNotListed), flow("last.test", 443, policy.ReasonHostNotListed))
	for name, events := range map[string][]event.Body{
		"advice": {
			ruled, loop, private, flow("port.test", 5432, policy.ReasonNotTLS), flow("text.test", 443, policy.ReasonNotTLS),
			flow("host.docker.internal", 3000, policy.ReasonHostNotListed),
			flow("gone.test", 443, policy.ReasonClientClosed), flow("statsig.anthropic.com", 443, policy.ReasonHostNotListed),
			flow("o1.ingest.sentry.io", 443, policy.ReasonHostNotListed), flow("notsentry.io", 443, policy.ReasonHostNotListed),
		},
		"closed":   {flow("gone.test", 443, policy.ReasonClientClosed)},
		"failed":   {flow("none.test", 443, policy.ReasonNotFound)},
		"needless": {flow("statsig.anthropic.com", 443, policy.ReasonHostNotListed)},
		"many":     many,
		"allowed":  {flow("api.test", 443, policy.ReasonAllowed), flow("api.test", 443, policy.ReasonAllowed), closed("api.test", 443, 1_200_000, 34_000)},
		"ceiling":  {flow("a.test", 443, policy.ReasonCeiling), flow("b.test", 443, policy.ReasonHostNotListed)},
		"upstream": {
			flow("a.test", 443, policy.ReasonProxyRefused), flow("b.test", 443, policy.ReasonProxyLogin),
			flow("c.test", 443, policy.ReasonProxyFailed), through("d.test", policy.ReasonNotFound), flow("e.test", 443, policy.ReasonNotFound),
		},
		"blocked": {
			flow("api.test", 443, policy.ReasonAllowed), closed("api.test", 443, 5, 0),
			flow("a.test", 443, policy.ReasonHostNotListed), flow("a.test", 443, policy.ReasonHostNotListed), askedToo,
			flow("b.test", 22, policy.ReasonPortNotListed), asked, request, udp, captured, private, flow("2600::1", 80, policy.ReasonHostNotListed),
			flow("bad.test", 443, policy.ReasonDeniedByRule), flow("api.test", 443, policy.ReasonRefused),
		},
		"hostile": {hostile, hostileToo, &event.FileRefused{Path: words, Wanted: files.ReadOnly, Reason: files.System}},
		"files": {
			&event.FileRefused{Path: "/srv/out", Wanted: files.ReadWrite, Reason: files.System, Count: 4},
			&event.FileRefused{Path: "/home/me/.ssh/id_rsa", Wanted: files.ReadOnly, Reason: files.Credential},
			&event.FileRefused{Path: "/home/me/.ssh/id_rsa", Wanted: files.ReadOnly, Reason: files.Credential},
			&event.FileRefused{Path: "/home/me/a b/*.txt", Wanted: files.ReadWrite, Reason: files.HomeDir},
			&event.FileRefused{Path: "/home/me/hidden", Wanted: files.ReadOnly, Reason: files.Named},
		},
		"flood":   {udp, flood, flood},
		"peers":   peers,
		"audited": {audited},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(t, events...)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for _, c := range got {
				if c != '\n' && (c < ' ' || c > '~') {
					t.Errorf("%q is printed", c)
				}
			}
		})
	}
}

func TestNothingToSay(t *testing.T) {
	if got := text(t, new(event.Command), &event.Query{Verdict: event.Verdict{Decision: event.Allowed}}); got != "" {
		t.Errorf("got %q", got)
	}
}

// A captured address that no name was given is named by the address.
func TestAddressWithoutName(t *testing.T) {
	e := &event.Connection{Port: 443, Addr: netip.MustParseAddrPort("198.18.0.9:443"), Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}
	if got := text(t, e); !strings.Contains(got, "blocked  198.18.0.9:443  1 time") {
		t.Errorf("got %q", got)
	}
}

func TestBounded(t *testing.T) {
	var c Collector
	for i := range maxKeys + 100 {
		if err := c.Emit(event.Event{Body: flow(fmt.Sprintf("h%d.test", i), 443, policy.ReasonHostNotListed)}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > maxBlockedLines+16 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(b.String(), "100 events more") || len(c.blocked) != maxKeys {
		t.Errorf("what did not fit is not told: %d kept", len(c.blocked))
	}
}

// A program may ask for any number of files, by names of any length.
func TestFilesAreBounded(t *testing.T) {
	var c Collector
	for i := range maxFileKeys + 50 {
		path := fmt.Sprintf("/%d/%s", i, strings.Repeat("x", 10_000))
		if err := c.Emit(event.Event{Body: &event.FileRefused{Path: path, Wanted: files.ReadWrite, Reason: files.System}}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b, Style{}); err != nil {
		t.Fatal(err)
	}
	if len(c.files) != maxFileKeys || strings.Count(b.String(), "\n") > maxFileLines+6 || strings.Contains(b.String(), "--write") {
		t.Errorf("%d are kept:\n%s", len(c.files), b.String())
	}
}

// A client chooses hosts and paths: long ones do not stay in memory.
func TestLongTextIsCut(t *testing.T) {
	var c Collector
	long := strings.Repeat("x", 100_000)
	request := flow("a.test", 443, policy.ReasonPathNotListed)
	request.Method, request.Path = "GET", "/"+long
	for _, e := range []event.Body{&event.Query{Asked: long}, request} {
		if err := c.Emit(event.Event{Body: e}); err != nil {
			t.Fatal(err)
		}
	}
	for k, total := range c.blocked {
		if n := len(k.host.Name()) + len(k.asked) + len(k.path) + len(total.suggest); n > 2*maxTextBytes {
			t.Errorf("%d bytes are kept of one line", n)
		}
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[int64]string{0: "", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1_200_000: "1.2 MB", 1 << 62: "4611686.0 TB"} {
		if got := size(in); got != want {
			t.Errorf("size(%d) = %q, want %q", in, got, want)
		}
	}
}

// On a terminal there are colours, and what does not fit goes into a second line.
func TestStyle(t *testing.T) {
	var c Collector
	for _, e := range []event.Body{flow("a.test", 443, policy.ReasonAllowed), flow("a-rather-long-name.test", 443, policy.ReasonHostNotListed)} {
		if err := c.Emit(event.Event{Body: e}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b, Style{Paint: cli.Paint{On: true}, Width: 60}); err != nil {
		t.Fatal(err)
	}
	const want = "launch: 1 destination allowed, 1 blocked\n" +
		"  \x1b[32mallowed\x1b[0m  a.test:443                   1 flow\n" +
		"  \x1b[31mblocked\x1b[0m  a-rather-long-name.test:443  1 time\n           no rule names this host\n" +
		"To allow what was blocked, add:\n  --allow a-rather-long-name.test\n"
	if b.String() != want {
		t.Errorf("got\n%q, want\n%q", b.String(), want)
	}
}

func TestReport(t *testing.T) {
	var c Collector
	h, err := policy.ParseHost("a.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []event.Body{
		&event.Connection{Host: h, Port: 443, Verdict: event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}},
		&event.Connection{Host: h, Port: 22, Verdict: event.Verdict{Reason: policy.ReasonPortNotListed}},
		&event.Connection{Host: h, Port: 22, Verdict: event.Verdict{Reason: policy.ReasonPortNotListed}},
		&event.Connection{Host: h, Port: 80, Verdict: event.Verdict{Reason: policy.ReasonRefused}},
		&event.Connection{Host: h, Port: 8443, Verdict: event.Verdict{Reason: policy.ReasonClientClosed}},
		&event.FileRefused{Path: "/x", Wanted: files.ReadWrite, Reason: files.System},
	} {
		if err := c.Emit(event.Event{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := c.Write(&out, Style{JSON: true, Found: []string{"/w/.egress.yaml (trusted)"}}); err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"allowed":[{"host":"a.test","port":443,"count":1,"reason":"allowed","meaning":"a rule allows it"}],` +
		`"blocked":[{"host":"a.test","port":22,"count":2,"reason":"port_not_listed","meaning":"rules name this host, but not this port","suggest":"--allow a.test:22"}],` +
		`"failed":[{"host":"a.test","port":80,"count":1,"reason":"connection_refused","meaning":"the origin refused the connection"}],` +
		`"closed":[{"host":"a.test","port":8443,"count":1,"reason":"client_closed","meaning":"the client ended the connection without a word; nothing was refused"}],` +
		`"audited":[],"files":[{"path":"/x","wanted":"write","count":1,"reason":"system"}],"policy_files":["/w/.egress.yaml (trusted)"]}` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
	out.Reset()
	if err := c.Write(&out, Style{Found: []string{"/w/.egress.yaml (trusted)"}}); err != nil || !strings.Contains(out.String(), "files that nobody named, too (--no-project goes without): /w/.egress.yaml (trusted)\n") {
		t.Errorf("%v, %s", err, out.String())
	}
}
