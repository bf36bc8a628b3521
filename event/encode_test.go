package event

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"egressd/event/internal/line"
	"egressd/policy"
	"egressd/policy/files"
)

// keysOf lists the keys of one line, in its order.
func keysOf(t *testing.T, data []byte) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	inList, depth := false, 0
	for key := true; ; {
		tok, err := dec.Token()
		if err != nil {
			return keys
		}
		if d, ok := tok.(json.Delim); ok {
			inList = d == '['
			switch d {
			case '{':
				depth++
			case '}':
				if depth--; depth == 1 {
					key = true // an object was the value of a key
				}
			}
			if d != ']' {
				continue
			}
		}
		if inList || depth > 1 {
			continue
		}
		if key {
			keys = append(keys, tok.(string))
		}
		key = !key
	}
}

// closedOrder lists the keys of the format in their order.
func closedOrder() (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[line.Line]()) {
		if !f.Anonymous {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys = append(keys, name)
		}
	}
	return keys
}

// The order of fields is part of the format: it is one order for all types.
func TestFieldOrder(t *testing.T) {
	order := closedOrder()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("x", 3600))
	seen := make(map[string]bool)
	for _, e := range every() {
		e.Time, e.Seq = at, 7
		data := appendLine(nil, &e)
		keys := keysOf(t, data)
		places := make([]int, len(keys))
		for i, k := range keys {
			places[i] = slices.Index(order, k)
			seen[k] = true
		}
		if slices.Contains(places, -1) || !slices.IsSorted(places) || len(slices.Compact(places)) != len(keys) {
			t.Errorf("fields are\n%q, in the order of\n%q", keys, order)
		}
		if want := `{"time":"2026-01-02T02:04:05.678901Z","seq":7,"type":"` + e.Type() + `",`; !bytes.HasPrefix(data, []byte(want)) {
			t.Errorf("line begins %.80s", data)
		}
	}
	for _, k := range order {
		if !seen[k] {
			t.Errorf("no example has %s", k)
		}
	}
}

// What a sink is given and what a reader decodes are the same, but for where a
// rule stands: that is text by then.
func TestDecode(t *testing.T) {
	for _, e := range every() {
		e.Time = e.Time.UTC().Truncate(time.Microsecond)
		data := appendLine(nil, &e)
		back, err := decode(data)
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		if again := appendLine(nil, &back); !bytes.Equal(again, data) {
			t.Errorf("decoded and encoded again\n%s, want\n%s", again, data)
		}
		for _, v := range []*Event{&back, &e} {
			switch b := v.Body.(type) {
			case *Connection:
				b.Rule = nil
			case *Query:
				b.Rule = nil
			}
		}
		if !reflect.DeepEqual(back, e) {
			t.Errorf("decoded %+v %+v, want %+v %+v", back, back.Body, e, e.Body)
		}
	}
}

// A word that no event has is an error, not the zero of its type.
func TestDecodeRefuses(t *testing.T) {
	whole := `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"network.connected","door":"connect","decision":"allowed","reason":"allowed","host":"a.test","port":443,"addr":"192.0.2.1:443","client":"192.0.2.2:1"}`
	if e, err := decode([]byte(whole)); err != nil || !e.Allowed() {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, tt := range []struct{ old, now string }{
		{`"network.connected"`, `"network.opened"`},
		{`"network.connected"`, `""`},
		{`"connect"`, `"window"`},
		{`"decision":"allowed"`, `"decision":"maybe"`},
		{`"decision":"allowed",`, ``},
		{`"reason":"allowed"`, `"reason":"unknown_reason"`},
		{`"reason":"allowed",`, ``},
		{`"a.test"`, `"a b"`},
		{`"192.0.2.1:443"`, `"192.0.2.1"`},
		{`"192.0.2.2:1"`, `"someone"`},
		{`"port":443`, `"port":65536`},
		{`"port":443`, `"part":443`},
		{`"connect"`, `"kernel"`}, // which allows nothing
		{`}`, `}{}`},
		{`}`, ``},
	} {
		data := strings.Replace(whole, tt.old, tt.now, 1)
		if e, err := decode([]byte(data)); err == nil {
			t.Errorf("%s: decoded as %+v", data, e.Body)
		}
	}
}

func TestZeroFieldsAreLeftOut(t *testing.T) {
	line := string(appendLine(nil, &Event{Body: new(Close)}))
	if want := `{"time":"0001-01-01T00:00:00.000000Z","seq":0,"type":"network.closed"}` + "\n"; line != want {
		t.Errorf("got %s want %s", line, want)
	}
}

// hostile are strings that break one reader or another.
var hostile = []string{
	"a\nb", "a\r\nb", "\x00", "\x1b[2J\x1b]0;x\x07", "\u2028\u2029\u0085", "\xff\xfe", "\xed\xa0\x80", "a\xc3",
	"\ufeff", "\u202e\u2066", `"}` + "\n" + `{"seq":1}`, `\`, `\u0000`, "\x7f", "</script><!--&", "\U0001f600\U0010ffff",
	strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<16), strings.Repeat("\U0001f600", 4096), strings.Repeat("\xf0", 5000),
}

// hostileEvents put s wherever a client, a file name or the system may.
func hostileEvents(s string) []Event {
	zone := netip.IPv6LinkLocalAllNodes().WithZone(s)
	return []Event{
		{Body: &Query{Asked: s}},
		{Body: &Connection{Path: s, Addr: netip.AddrPortFrom(zone, 1), Client: netip.AddrPortFrom(zone, 1)}},
		{Body: &Connection{Path: s, Verdict: Verdict{Rule: &policy.Rule{Text: s, Pos: policy.Pos{File: s, Line: 1, Column: 2}}}}},
		{Body: &Packet{Proto: s, Dst: zone}},
		{Body: &FileChanged{Path: s}},
		{Body: &FileRefused{Path: s, Wanted: files.ReadOnly, Rule: files.Rule{Path: s, At: s}}},
	}
}

func checkLine(t *testing.T, e Event, s string) {
	t.Helper()
	data := appendLine(nil, &e)
	if n := bytes.Count(data, []byte("\n")); n != 1 || data[len(data)-1] != '\n' {
		t.Fatalf("%q: %d line ends", s, n)
	}
	for _, c := range data[:len(data)-1] {
		if c < ' ' || c > '~' {
			t.Fatalf("%q: byte %#x in the line", s, c)
		}
	}
	var back line.Line
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatalf("%q: %v in %s", s, err, data)
	}
	got := back.Path + back.Host
	if p, ok := e.Body.(*Packet); ok {
		got = back.Proto
		if want := p.Dst.String(); utf8.ValidString(want) && len(want) <= maxStringBytes && (back.Addr != want || back.Host != want) {
			t.Errorf("decoded %q and %q, want %q", back.Addr, back.Host, want)
		}
	}
	if len(s) <= maxStringBytes && utf8.ValidString(s) && got != s {
		t.Errorf("decoded %q, want %q", got, s)
	}
	if len(data) > 4*7*maxStringBytes {
		t.Errorf("a line of %d bytes", len(data))
	}
}

func TestHostileStrings(t *testing.T) {
	for _, s := range hostile {
		for _, e := range hostileEvents(s) {
			checkLine(t, e, s)
		}
	}
}

func TestLongStringsSayWhatIsMissing(t *testing.T) {
	e := Event{Body: &FileChanged{Path: strings.Repeat("é", 2000)}}
	var back line.Line
	if err := json.Unmarshal(appendLine(nil, &e), &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("é", 1024) + "...(+1952 bytes)"; back.Path != want {
		t.Errorf("got ...%q", back.Path[len(back.Path)-40:])
	}
	// What goes to another process, which writes the line, is whole.
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(bytes.Replace(data, []byte(`"type"`), []byte(`"change":"added","type"`), 1))
	if err != nil || got.Body.(*FileChanged).Path != strings.Repeat("é", 2000) {
		t.Errorf("%v, %v", got.Body, err)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range hostile[:16] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, e := range hostileEvents(s) {
			checkLine(t, e, s)
		}
	})
}

// FuzzDecode: what decode accepts, it accepts again from its own encoding.
func FuzzDecode(f *testing.F) {
	for _, e := range every() {
		f.Add(appendLine(nil, &e))
		e.origin = newOrigin(strings.Repeat("b", maxStringBytes+1), map[string]string{"k": strings.Repeat("v", maxStringBytes+1)}, maxStringBytes)
		f.Add(appendLine(nil, &e))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decode(data)
		if err != nil {
			return
		}
		once, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decode(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice, _ := again.MarshalJSON(); !bytes.Equal(once, twice) {
			t.Errorf("%s, then %s", once, twice)
		}
	})
}

func hostOf(name string) policy.Host {
	h, err := policy.ParseHost(name)
	if err != nil {
		panic(err)
	}
	return h
}

func sample() Event {
	return Event{
		Time: time.Now(), Session: "ABCDEFGHIJKLMNOP", Isolation: "netns", Policy: "sha256:" + strings.Repeat("0f", 32),
		Body: &Connection{
			Flow: 12, Door: DoorTransparent, Host: hostOf("api.example.com"), Port: 443,
			Verdict: Verdict{
				Decision: Allowed, Reason: policy.ReasonAllowed,
				Rule: &policy.Rule{Text: "api.example.com", Pos: policy.Pos{File: "--allow", Line: 1}},
			},
			Addr: netip.MustParseAddrPort("203.0.113.9:443"), Client: netip.MustParseAddrPort("192.0.2.1:40000"),
		},
	}
}

func BenchmarkLine(b *testing.B) {
	e := sample()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendLine(buf[:0], &e)
	}
}

func BenchmarkLineEncodingJSON(b *testing.B) {
	e := sample()
	var l line.Line
	if err := json.Unmarshal(appendLine(nil, &e), &l); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(&l); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLineDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, e := range append(every(), sample()) {
		if n := testing.AllocsPerRun(100, func() { buf = appendLine(buf[:0], &e) }); n != 0 {
			t.Errorf("%s: %v allocations a line", e.Type(), n)
		}
	}
}
