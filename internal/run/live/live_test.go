package live

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/policy"
	"egressd/policy/files"
)

func TestLines(t *testing.T) {
	h, err := policy.ParseHost("a.test")
	if err != nil {
		t.Fatal(err)
	}
	allowed := event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}
	denied := event.Verdict{Reason: policy.ReasonHostNotListed}
	rule := event.Verdict{Reason: policy.ReasonDeniedByRule, Rule: &policy.Rule{Text: "*.test", Pos: policy.Pos{File: "d.yaml", Line: 2, Column: 5}}}
	var out bytes.Buffer
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.Local)
	s := &Sink{W: &out, Now: func() time.Time { return at }}
	for _, b := range []event.Body{
		&event.Connection{Verdict: allowed, Host: h, Port: 443},
		&event.Connection{Verdict: allowed, Host: h, Port: 443, Method: "GET", Path: "/x\x1b[2J"},
		&event.Connection{Verdict: denied, Host: h, Port: 22, Repeated: 3},
		&event.Connection{Verdict: denied, Addr: netip.MustParseAddrPort("[2001:db8::1]:80"), Port: 80},
		&event.Connection{Verdict: rule, Host: h, Port: 443},
		&event.Connection{Verdict: event.Verdict{Decision: event.Allowed, Reason: policy.ReasonHostNotListed, Audit: true}, Host: h, Port: 443},
		&event.Connection{Verdict: event.Verdict{Reason: policy.ReasonRefused}, Host: h, Port: 443},
		&event.Connection{Verdict: event.Verdict{Reason: policy.ReasonClientClosed}, Host: h, Port: 443},
		&event.Query{Verdict: allowed, Host: h},
		&event.Query{Verdict: denied, Host: h},
		&event.Packet{Proto: "udp", Dst: netip.MustParseAddr("192.0.2.1"), Port: 53},
		&event.FileRefused{Path: "/home/u/.ssh/id", Wanted: files.ReadOnly, Reason: files.Credential},
		&event.Close{Host: h}, &event.Command{},
	} {
		if err := s.Emit(event.Event{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.ReplaceAll(`launch: AT allowed a.test:443
launch: AT allowed GET a.test:443/x\x1b[2J
launch: AT blocked a.test:22: no rule names this host (3 times)
launch: AT blocked [2001:db8::1]:80: no rule names this host
launch: AT blocked a.test:443: a deny rule covers it: *.test (d.yaml:2:5)
launch: AT audited a.test:443: no rule names this host
launch: AT failed  a.test:443: the origin refused the connection
launch: AT closed  a.test:443: by the client, before it said anything
launch: AT blocked a.test (DNS): no rule names this host
launch: AT blocked udp 192.0.2.1:53: the gate carries TCP only
launch: AT refused read /home/u/.ssh/id: credential
`, "AT", "10:00:00")
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
	e := event.Event{Time: at, Body: &event.Connection{Verdict: denied, Host: h, Port: 22}}
	if got := Line(&e, cli.Paint{On: true}); !strings.Contains(got, "\x1b[31mblocked\x1b[0m") {
		t.Errorf("%q", got)
	}
}
