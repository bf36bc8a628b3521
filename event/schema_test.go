package event

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"egressd/policy"
	"egressd/policy/files"
)

const schemaFile = "../docs/event.schema.json"

func loadSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("event.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, line []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s.Validate(v)
}

// wordsOf lists the words from first on that a type has.
func wordsOf[T interface {
	~uint8
	String() string
}](first T) (words []string) {
	for v := first; v.String() != "" && v.String() != T(255).String(); v++ {
		words = append(words, v.String())
	}
	return words
}

// types lists the types of events.
func types() (words []string) {
	for _, e := range every() {
		words = append(words, e.Type())
	}
	slices.Sort(words)
	return slices.Compact(words)
}

func TestSchemaIsInStep(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		AdditionalProperties *bool
		Properties           map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Error("additionalProperties must be false")
	}
	var have []string
	for name := range schema.Properties {
		have = append(have, name)
	}
	same(t, "properties", have, closedOrder())
	same(t, "types", schema.Properties["type"].Enum, types())
	same(t, "doors", schema.Properties["door"].Enum, wordsOf(DoorConnect))
	same(t, "decisions", schema.Properties["decision"].Enum, []string{Allowed.String(), Blocked.String()})
	reasons := wordsOf(policy.ReasonNoPolicy)
	for _, word := range wordsOf(files.NoPolicy) {
		if !slices.Contains(reasons, word) {
			reasons = append(reasons, word)
		}
	}
	same(t, "reasons", schema.Properties["reason"].Enum, reasons)
	same(t, "wishes", schema.Properties["wanted"].Enum, []string{"read", "write"})
	same(t, "changes", schema.Properties["change"].Enum, wordsOf(Added))
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: the schema has\n%q\nthe code has\n%q", what, got, want)
	}
}

// every returns one event of each kind, with every field set somewhere.
func every() []Event {
	hash, peer := strings.Repeat("a0", 32), "uid=1000 gid=1000 pid=1"
	v := Verdict{
		Decision: Allowed, Reason: policy.ReasonAllowed, Audit: true,
		Rule: &policy.Rule{Text: "h", Pos: policy.Pos{File: "--allow", Line: 1}},
	}
	bodies := []Body{
		&Connection{
			Flow: 1, Door: DoorTransparent, Verdict: v, Host: hostOf("h"), Port: 443, Server: hostOf("other"),
			Addr: netip.MustParseAddrPort("203.0.113.1:443"), Client: netip.MustParseAddrPort("192.0.2.1:1"),
			Method: "GET", Path: "/", Error: "no", Via: "proxy:3128",
		},
		&Connection{Door: DoorHTTP, Host: hostOf("2001:db8::1"), Port: 80, Server: hostOf("192.0.2.1")},
		&Connection{Door: DoorHTTP, Repeated: 3, First: time.Unix(1, 0).UTC()},
		&Query{Verdict: Verdict{Reason: policy.ReasonHostNotListed}, Repeated: 3, First: time.Unix(1, 0).UTC()},
		&Packet{Proto: "udp", Dst: netip.MustParseAddr("203.0.113.1"), Port: 443, Src: netip.MustParseAddr("2001:db8::1")},
		&Packet{Count: 7},
		&Close{Flow: 1, Door: DoorConnect, Host: hostOf("h"), Port: 22, BytesIn: 1, BytesOut: 1, Duration: time.Millisecond, Error: "reset"},
		&Query{
			Verdict: v, Host: hostOf("h"), Addr: netip.MustParseAddr("10.0.0.1"), Client: netip.MustParseAddrPort("[::1]:1"),
			QType: "A", RCode: NXDomain,
		},
		&Query{Verdict: Verdict{Reason: policy.ReasonMalformed}, Asked: `a\032b`, QType: "TYPE65399"},
		&Command{ArgvHash: hash, Limits: "pids=1024"},
		&Command{ArgvHash: hash, Files: []string{"write: /srv/x", "home: private"}, PolicyFiles: []string{"trusted " + hash + " /srv/.egress.yaml"}},
		&RunCompleted{ExitCode: 0, Duration: 5 * time.Millisecond, LimitsMet: "memory"},
		&RunFailed{ExitCode: 125, Error: "no", LimitsMet: "memory,pids"},
		&FileChanged{Path: "/a", Change: Added},
		&FileRefused{Path: "/home/me/.ssh/id", Wanted: files.ReadOnly, Reason: files.Credential, Rule: files.Rule{Path: "~/.ssh", At: "built in"}},
		&FileRefused{Path: "/etc/hosts", Wanted: files.ReadWrite, Reason: files.System, Count: 7},
		&FileReplaced{Path: "/a", Was: hash, Now: hash, Exposed: true},
		&PolicyLoaded{Name: "default", Added: 2, Removed: 1},
		&PolicyRejected{Name: "default", Error: "p.yaml:1:1: no"},
		&DaemonStarted{Version: "v1.2.3"},
		&recordResumed{Lost: 3, Duration: time.Second, Error: "no space left on device"},
		&DaemonStopped{Version: "v1.2.3", Duration: 5 * time.Millisecond, Error: "no"},
		&SessionOpened{Name: "default", Client: peer, ArgvHash: hash},
		&SessionRefused{Name: "default", Client: peer, ArgvHash: hash, Duration: 5 * time.Millisecond, Error: "no"},
		&SessionClosed{Name: "default", Client: peer, ArgvHash: hash, Duration: 5 * time.Millisecond, Error: "no"},
	}
	events := make([]Event, 0, len(bodies))
	place := newOrigin("0123456789abcdef", map[string]string{"host.name": "web-1", "k8s.pod.name": "agent-0"}, maxStringBytes)
	for _, b := range bodies {
		events = append(events, Event{
			Time: time.Unix(1, 2), Seq: 1, Session: "s", Isolation: "netns", Policy: "sha256:" + strings.Repeat("0f", 32), Body: b, origin: place,
		})
	}
	return events
}

// Every type that implements Body has an example: the code lists them here.
func TestEveryBodyHasAnExample(t *testing.T) {
	src, err := os.ReadFile("body.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`func \(\*(\w+)\) word\(\)`).FindAllSubmatch(src, -1) {
		if !slices.ContainsFunc(every(), func(e Event) bool { return reflect.TypeOf(e.Body).Elem().Name() == string(m[1]) }) {
			t.Errorf("no example of %s", m[1])
		}
	}
}

func TestEveryKindValidates(t *testing.T) {
	s := loadSchema(t)
	for _, e := range every() {
		line := appendLine(nil, &e)
		if err := validate(t, s, line); err != nil {
			t.Errorf("%s%v", line, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := loadSchema(t)
	for _, tt := range []struct{ name, line string }{
		{"unknown field", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"network.closed","flow":1,"extra":1}`},
		{"unknown type", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.opened"}`},
		{"unknown reason", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"network.connected","door":"dns","decision":"blocked","reason":"because"}`},
		{"unknown door", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"network.connected","door":"window","decision":"blocked","reason":"not_tls"}`},
		{"no decision", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"network.connected","door":"dns"}`},
		{"a change of nothing", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.changed","change":"added"}`},
		{"an unknown change", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.changed","path":"/a","change":"moved"}`},
		{"a refusal of nothing", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.refused","reason":"credential","wanted":"read"}`},
		{"a refusal of no wish", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.refused","reason":"credential","path":"/a"}`},
		{"a replacement of nothing", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"file.replaced","exposed":true}`},
		{"a policy without a name", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"policy.loaded"}`},
		{"a rejection without a cause", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"policy.rejected","name":"default"}`},
		{"a session of nobody", `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"session.opened","session":"s"}`},
		{"no number", `{"time":"2026-01-02T03:04:05.000000Z","type":"network.closed","flow":1}`},
		{"no time", `{"seq":1,"type":"network.closed","flow":1}`},
	} {
		if validate(t, s, []byte(tt.line)) == nil {
			t.Errorf("%s: accepted %s", tt.name, tt.line)
		}
	}
}
