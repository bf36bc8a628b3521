package inside

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
)

type sink struct {
	got []event.Event
	err error
}

func (s *sink) Emit(e event.Event) error {
	s.got = append(s.got, e)
	return s.err
}

// line is an event as a gate prints it.
func line(t *testing.T, body event.Body) string {
	t.Helper()
	text, err := json.Marshal(event.Event{Session: "theirs", Isolation: "netns", Seq: 9, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// Threat: the program writes into the gate's output: lines that say what only launch
// may say, of another run, without end, or too many.
func TestForgedOutput(t *testing.T) {
	flow := line(t, &event.Connection{Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, Door: event.DoorConnect, Port: 443})
	for _, tt := range []struct {
		name, text string
		events     int
		words      string
		err        error
	}{
		{"decisions", flow + flow, 2, "", nil},
		{"the end of the run", line(t, &event.RunCompleted{}), 0, "", nil},
		{"a change of a file", line(t, &event.FileChanged{Path: "/x", Change: event.Deleted}), 0, "", nil},
		{"a policy", line(t, &event.PolicyLoaded{Name: "x"}) + flow, 1, "", nil},
		{"no event", "panic: x\n", 0, "panic: x", nil},
		{"an unknown key", strings.Replace(flow, "{", `{"x":1,`, 1), 0, `{"x":1`, nil},
		{"half a line", flow[:len(flow)/2], 0, "", nil},
		{"a line without end", strings.Repeat("x", maxLine+1), 0, "", errTooLong},
		{"a long line", strings.Repeat("x", maxLine) + "\n" + flow, 1, "xx", nil},
	} {
		s := &sink{}
		o := NewOutput(s, event.Event{Session: "ours", Isolation: Isolation})
		if err := o.Write("stdout", []byte(tt.text)); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if len(s.got) != tt.events || !strings.HasPrefix(o.Words(), tt.words) || tt.words == "" && o.Words() != "" || len(o.Words()) > maxWords {
			t.Errorf("%s: %d events, words %.40q", tt.name, len(s.got), o.Words())
		}
		for _, e := range s.got {
			if e.Session != "ours" || e.Isolation != Isolation || e.Seq != 0 || !e.Time.IsZero() || e.Boot() != "" {
				t.Errorf("%s: the gate said whose and when: %+v", tt.name, e)
			}
		}
	}
	o := NewOutput(nil, event.Event{})
	o.total = maxTotal
	if err := o.Write("stdout", []byte("x")); !errors.Is(err, errTooMuch) {
		t.Errorf("more than is read: %v", err)
	}
}

// What is not recorded is not let out: the reader of the gate ends it then.
func TestUnrecorded(t *testing.T) {
	full := errors.New("disk full")
	o := NewOutput(&sink{err: full}, event.Event{})
	text := line(t, &event.Close{Door: event.DoorConnect})
	for _, part := range []string{text[:10], text[10 : len(text)-1]} {
		if err := o.Write("stdout", []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Write("stdout", []byte("\n")); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

func TestReady(t *testing.T) {
	const listens, ready = `{"level":"INFO","msg":"listening","door":"proxy","addr":"127.0.0.1:4000"}`, `{"level":"INFO","msg":"ready"}`
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{listens, ready, ready}, "127.0.0.1:4000"},
		{[]string{listens}, ""},
		{[]string{ready, listens}, ""},
		{[]string{strings.Replace(listens, "127.0.0.1", "192.0.2.1", 1), ready}, ""}, // proxy variables lead nowhere else
		{[]string{strings.Replace(listens, "127.0.0.1:4000", "x", 1), ready}, ""},
		{[]string{strings.Replace(listens, "proxy", "admin", 1), ready}, ""},
	} {
		o := NewOutput(nil, event.Event{})
		if err := o.Write("stderr", []byte(strings.Join(tt.lines, "\n")+"\n")); err != nil {
			t.Fatal(err)
		}
		got := ""
		select {
		case p := <-o.Ready():
			got = p.String()
		default:
		}
		if got != tt.want {
			t.Errorf("%q: ready at %q, want %q", tt.lines, got, tt.want)
		}
	}
}

func TestGate(t *testing.T) {
	p, err := policy.Compile(&policy.Document{
		Allow: []policy.Entry{{Text: "GET https://api.example.com/v1/**"}, {Text: "*.example.org"}},
		Deny:  []policy.Entry{{Text: "10.0.0.0/8"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	// An ELF header alone: 64 bits, little-endian, an executable.
	head := func(machine byte) []byte {
		h := make([]byte, 64)
		copy(h, "\x7fELF\x02\x01\x01")
		h[16], h[18], h[20], h[52] = 2, machine, 1, 64
		return h
	}
	// A program header says which interpreter loads its libraries.
	linked := func(table byte) []byte {
		h := append(head(62), make([]byte, 56)...)
		h[32], h[54], h[56], h[64] = table, 56, 1, 3
		return h
	}
	with := func(at int, value byte) []byte {
		h := head(62)
		h[at] = value
		return h
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"script":      {[]byte("#!/bin/sh\n" + strings.Repeat("# long\n", 20)), "not a program"},
		"empty":       {nil, "not a program"},
		"cut-off":     {linked(64)[:100], "not a program"},
		"beyond":      {linked(200), "not a program"},
		"negative":    {append(with(39, 0xff)[:56], append([]byte{1}, make([]byte, 7)...)...), "not a program"},
		"dynamic":     {linked(64), "CGO_ENABLED=0"},
		"riscv":       {head(243), "EM_RISCV"},
		"32 bits":     {with(4, 1), "another processor"},
		"most first":  {with(5, 2), "another processor"},
		"no machine":  {head(0), "another processor"},
		"other magic": {with(1, 'e'), "not a program"},
	} {
		if _, err := Open(write(name, tt.data), p); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := Open(dir, p); err == nil {
		t.Error("a directory is taken for an egressd")
	}
	g, err := Open(write("amd64", head(62)), p)
	if err != nil {
		t.Fatal(err)
	}
	if g.Fits("") != nil || g.Fits("amd64") != nil || g.Fits("arm64") == nil || !g.OpensTLS() {
		t.Error("the gate does not know what it is for")
	}
	text, err := g.Policy()
	if err != nil {
		t.Fatal(err)
	}
	d, err := policy.ParseFile("policy.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	inside, err := policy.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, deny := range []bool{false, true} {
		for r := range inside.Each(deny) {
			rules = append(rules, r.Text)
		}
	}
	if want := []string{"GET https://api.example.com/v1/**", "*.example.org", synthetic, "10.0.0.0/8"}; !slices.Equal(rules, want) {
		t.Errorf("the gate gets %q, want %q", rules, want)
	}
	if a := netip.MustParsePrefix(strings.TrimSuffix(synthetic, ":*")); !a.Contains(netip.MustParseAddr("198.19.255.255")) {
		t.Errorf("%v does not hold what RFC 2544 reserves", a)
	}
}
