package summary

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/event"
)

var update = flag.Bool("update", false, "rewrite testdata")

func flow(host string, port uint16, reason string) event.Event {
	e := event.Event{Type: event.NetworkConnected, Host: host, Port: port, Decision: event.Blocked, Reason: reason}
	if reason == "allowed" {
		e.Decision = event.Allowed
	}
	return e
}

func closed(host string, port uint16, in, out int64) event.Event {
	return event.Event{Type: event.NetworkClosed, Host: host, Port: port, BytesIn: in, BytesOut: out}
}

func text(t *testing.T, events ...event.Event) string {
	t.Helper()
	var c Collector
	for _, e := range events {
		if err := c.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	request := flow("api.test", 443, "method_not_listed")
	request.Method, request.Path = "POST", "/v1/x"
	udp := flow("203.0.113.9", 443, "protocol_not_carried")
	udp.Proto, udp.Door = "udp", event.DoorKernel
	captured := flow("named.test", 5432, "destination_ip_prohibited")
	captured.Addr = "198.18.0.1:5432"
	private := flow("inside.test", 443, "destination_ip_prohibited")
	private.Addr = "10.0.0.9:443"
	asked := event.Event{Type: event.DNSQuery, Host: "asked.test", Decision: event.Blocked, Reason: "host_not_listed"}
	askedToo := asked
	askedToo.Host = "a.test"
	flood := event.Event{Type: event.NetworkConnected, Door: event.DoorKernel, Decision: event.Blocked, Reason: "protocol_not_carried", Count: 4321}
	peers := []event.Event{flow("name.test", 443, "host_not_listed"), private}
	for i := range 30 {
		peers = append(peers, flow(fmt.Sprintf("203.0.113.%d", i), 6881, "host_not_listed"))
		local := flow(fmt.Sprintf("10.0.0.%d", i), 80, "destination_ip_prohibited")
		local.Addr = local.Host
		peers = append(peers, local)
	}
	peers = append(peers, flow("203.0.113.29", 6881, "host_not_listed"), flow("203.0.113.29", 6881, "host_not_listed"))
	hostile := flow("x\x1b[2J\nlaunch: all is well\u202e"+strings.Repeat("y", 999), 443, "host_not_listed")
	audited := flow("audit.test", 22, "host_not_listed")
	audited.Decision, audited.Audit = event.Allowed, true
	for name, events := range map[string][]event.Event{
		"allowed": {flow("api.test", 443, "allowed"), flow("api.test", 443, "allowed"), closed("api.test", 443, 1_200_000, 34_000)},
		"ceiling": {flow("a.test", 443, "outside_ceiling"), flow("b.test", 443, "host_not_listed")},
		"blocked": {
			flow("api.test", 443, "allowed"), closed("api.test", 443, 5, 0),
			flow("a.test", 443, "host_not_listed"), flow("a.test", 443, "host_not_listed"), askedToo,
			flow("b.test", 22, "port_not_listed"), asked, request, udp, captured, private, flow("2600::1", 80, "host_not_listed"),
			flow("bad.test", 443, "denied_by_rule"), flow("api.test", 443, "connection_refused"),
		},
		"hostile": {hostile},
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
	if got := text(t, event.Event{Type: event.CommandExecuted}, event.Event{Type: event.DNSQuery, Decision: event.Allowed}); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestBounded(t *testing.T) {
	var c Collector
	for i := range maxKeys + 100 {
		if err := c.Emit(flow(fmt.Sprintf("h%d.test", i), 443, "host_not_listed")); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > maxBlockedLines+6 {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(b.String(), "100 events more") || len(c.blocked) != maxKeys {
		t.Errorf("what did not fit is not told: %d kept", len(c.blocked))
	}
}

// A client chooses hosts and paths: long ones do not stay in memory.
func TestLongTextIsCut(t *testing.T) {
	var c Collector
	long := strings.Repeat("x", 100_000)
	request := flow("a.test", 443, "path_not_listed")
	request.Method, request.Path = "GET", "/"+long
	for _, e := range []event.Event{flow(long, 443, "http_request_error"), request} {
		if err := c.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	for k, total := range c.blocked {
		if n := len(k.host) + len(k.path) + len(total.suggest); n > 2*maxTextBytes {
			t.Errorf("%d bytes are kept of one line", n)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{[]string{"a.test", "b.test:22"}, "--allow a.test,b.test:22"},
		{[]string{"*.a.test"}, "--allow '*.a.test'"},
		{[]string{"GET https://a.test/x y'z", "a.test"}, `--allow a.test --allow 'GET https://a.test/x y'\''z'`},
	} {
		if got := Flags(tt.in); got != tt.want {
			t.Errorf("got %s want %s", got, tt.want)
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
