package event

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"egressd/policy"
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

// constants reports the values of the string constants of typ in event.go.
func constants(t *testing.T, match func(name, typ string) bool) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) == 0 {
			return true
		}
		typ := ""
		if id, ok := spec.Type.(*ast.Ident); ok {
			typ = id.Name
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && match(spec.Names[0].Name, typ) {
			v, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		return true
	})
	return out
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
	var fields []string
	typ := reflect.TypeFor[Event]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	var have []string
	for name := range schema.Properties {
		have = append(have, name)
	}
	same(t, "properties", have, fields)
	same(t, "types", schema.Properties["type"].Enum, constants(t, func(_, typ string) bool { return typ == "Type" }))
	same(t, "doors", schema.Properties["door"].Enum, constants(t, func(_, typ string) bool { return typ == "Door" }))
	same(t, "decisions", schema.Properties["decision"].Enum, []string{Allowed, Blocked})
	var reasons []string
	for r := policy.ReasonNoPolicy; r.String() != (policy.ReasonInternal + 1).String(); r++ {
		reasons = append(reasons, r.String())
	}
	same(t, "reasons", schema.Properties["reason"].Enum, reasons)
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
	code := 0
	digest := "sha256:" + strings.Repeat("0f", 32)
	base := Event{Time: time.Unix(1, 2), Seq: 1, Session: "s", Isolation: "netns", Policy: digest}
	with := func(f func(*Event)) Event { e := base; f(&e); return e }
	return []Event{
		with(func(e *Event) {
			e.Type, e.Door, e.Decision, e.Reason, e.Flow = NetworkConnected, DoorTransparent, Allowed, "allowed", 1
			e.Host, e.Port, e.Addr, e.Server, e.Client = "h", 443, "203.0.113.1:443", "other", "192.0.2.1:1"
			e.Rule, e.RulePos, e.Audit, e.Method, e.Path = "h", "--allow #1", true, "GET", "/"
		}),
		with(func(e *Event) {
			e.Type, e.Door, e.Decision, e.Reason, e.Proto = NetworkConnected, DoorKernel, Blocked, "protocol_not_carried", "udp"
		}),
		with(func(e *Event) {
			e.Type, e.Flow, e.BytesIn, e.BytesOut, e.DurationMS, e.Error = NetworkClosed, 1, 1, 1, 1, "reset"
		}),
		with(func(e *Event) {
			e.Type, e.Door, e.Decision, e.Reason, e.QType, e.RCode = DNSQuery, DoorDNS, Blocked, "host_not_listed", "A", "NXDOMAIN"
		}),
		with(func(e *Event) { e.Type, e.ArgvHash = CommandExecuted, strings.Repeat("a0", 32) }),
		with(func(e *Event) { e.Type, e.ExitCode, e.DurationMS = RunCompleted, &code, 5 }),
		with(func(e *Event) { e.Type, e.ExitCode, e.Error = RunFailed, &code, "no" }),
		with(func(e *Event) { e.Type, e.Path, e.Change = FileChanged, "/a", "added" }),
		with(func(e *Event) { e.Type, e.Name, e.Added, e.Removed = PolicyLoaded, "default", 2, 1 }),
		with(func(e *Event) { e.Type, e.Name, e.Error = PolicyRejected, "default", "p.yaml:1:1: no" }),
		with(func(e *Event) { e.Type, e.Version = DaemonStarted, "v1.2.3" }),
		with(func(e *Event) { e.Type, e.DurationMS = DaemonStopped, 5 }),
		with(func(e *Event) {
			e.Type, e.Name, e.Client, e.ArgvHash = SessionOpened, "default", "uid=1000 gid=1000 pid=1", strings.Repeat("a0", 32)
		}),
		with(func(e *Event) {
			e.Type, e.Name, e.Client, e.Error = SessionRefused, "default", "uid=1000 gid=1000 pid=1", "no"
		}),
		with(func(e *Event) {
			e.Type, e.Name, e.Client, e.DurationMS = SessionClosed, "default", "uid=1000 gid=1000 pid=1", 5
		}),
	}
}

func TestEveryKindValidates(t *testing.T) {
	s := loadSchema(t)
	seen := make(map[Type]bool)
	for _, e := range every() {
		line := appendLine(nil, &e)
		if err := validate(t, s, line); err != nil {
			t.Errorf("%s%v", line, err)
		}
		seen[e.Type] = true
	}
	for _, typ := range constants(t, func(_, typ string) bool { return typ == "Type" }) {
		if !seen[Type(typ)] {
			t.Errorf("no example of %s", typ)
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
