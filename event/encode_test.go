package event

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The order of fields is part of the format.
func TestFieldOrder(t *testing.T) {
	code := 3
	e := Event{Time: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("x", 3600)), ExitCode: &code}
	v := reflect.ValueOf(&e).Elem()
	var want []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		want = append(want, name)
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("v")
		case reflect.Uint64, reflect.Uint16:
			f.SetUint(7)
		case reflect.Int64:
			f.SetInt(8)
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	line := appendLine(nil, &e)
	var got []string
	dec := json.NewDecoder(bytes.NewReader(line))
	for depth, key := 0, true; ; {
		tok, err := dec.Token()
		if err != nil {
			break
		}
		if d, ok := tok.(json.Delim); ok {
			depth += map[json.Delim]int{'{': 1, '}': -1}[d]
			continue
		}
		if key {
			got = append(got, tok.(string))
		}
		key = !key
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("fields are\n%q, want\n%q", got, want)
	}
	if !bytes.HasPrefix(line, []byte(`{"time":"2026-01-02T02:04:05.678901Z","seq":7,"type":"v",`)) {
		t.Errorf("line begins %.80s", line)
	}
	var back Event
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	if !reflect.DeepEqual(back, e) {
		t.Errorf("decoded %+v, want %+v", back, e)
	}
}

func TestZeroFieldsAreLeftOut(t *testing.T) {
	line := string(appendLine(nil, &Event{Type: DNSQuery}))
	if want := `{"time":"0001-01-01T00:00:00.000000Z","seq":0,"type":"dns.query"}` + "\n"; line != want {
		t.Errorf("got %s want %s", line, want)
	}
}

// hostile are strings that break one reader or another.
var hostile = []string{
	"a\nb", "a\r\nb", "\x00", "\x1b[2J\x1b]0;x\x07", "\u2028\u2029\u0085", "\xff\xfe", "\xed\xa0\x80", "a\xc3",
	"\ufeff", "\u202e\u2066", `"}` + "\n" + `{"seq":1}`, `\`, `\u0000`, "\x7f", "</script><!--&", "\U0001f600\U0010ffff",
	strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<16), strings.Repeat("\U0001f600", 4096), strings.Repeat("\xf0", 5000),
}

func checkLine(t *testing.T, e Event) {
	t.Helper()
	line := appendLine(nil, &e)
	if n := bytes.Count(line, []byte("\n")); n != 1 || line[len(line)-1] != '\n' {
		t.Fatalf("%q: %d line ends", e.Host, n)
	}
	for _, c := range line[:len(line)-1] {
		if c < ' ' || c > '~' {
			t.Fatalf("%q: byte %#x in the line", e.Host, c)
		}
	}
	var back Event
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatalf("%q: %v in %s", e.Host, err, line)
	}
	want := strings.ToValidUTF8(e.Host, "\ufffd")
	if len(e.Host) <= maxStringBytes && utf8.ValidString(e.Host) && back.Host != want {
		t.Errorf("decoded %q, want %q", back.Host, want)
	}
	if len(line) > 7*maxStringBytes {
		t.Errorf("a line of %d bytes", len(line))
	}
}

func TestHostileStrings(t *testing.T) {
	for _, s := range hostile {
		checkLine(t, Event{Type: NetworkConnected, Host: s})
	}
}

func TestLongStringsSayWhatIsMissing(t *testing.T) {
	var back Event
	if err := json.Unmarshal(appendLine(nil, &Event{Path: strings.Repeat("é", 2000)}), &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("é", 1024) + "...(+1952 bytes)"; back.Path != want {
		t.Errorf("got ...%q", back.Path[len(back.Path)-40:])
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range hostile[:16] {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkLine(t, Event{Type: NetworkConnected, Host: s}) })
}

func sample() Event {
	return Event{
		Time: time.Now(), Type: NetworkConnected, Session: "ABCDEFGHIJKLMNOP", Isolation: "netns", Flow: 12, Door: DoorTransparent,
		Decision: Allowed, Reason: "allowed", Rule: "api.example.com", RulePos: "--allow #1",
		Policy: "sha256:" + strings.Repeat("0f", 32), Host: "api.example.com", Port: 443, Addr: "203.0.113.9:443", Client: "192.0.2.1:40000",
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
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(&e); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLineDoesNotAllocate(t *testing.T) {
	e := sample()
	buf := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { buf = appendLine(buf[:0], &e) }); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}
