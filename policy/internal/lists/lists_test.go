package lists

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// options are a small grammar: lower-case names, with ports or not.
func options(format Format) Options {
	return Options{
		Format: format,
		Plain: func(name []byte) bool {
			for _, c := range name {
				if !nameByte(c) {
					return false
				}
			}
			return len(name) > 0 && name[0] != '.'
		},
		Broad: func(name string) bool { return name == "com" },
		Parse: func(rule string) (string, Scope, error) {
			name, _, ported := strings.Cut(rule, ":")
			switch {
			case strings.Contains(rule, "com") && strings.HasPrefix(rule, "*."):
				return "", 0, errors.New("too broad")
			case strings.ContainsAny(rule, "/ ") || strings.HasPrefix(rule, "."):
				return "", 0, nil
			case ported && strings.HasPrefix(name, "*."):
				return name[2:], Below, nil
			}
			return strings.ToLower(name), Apex, nil
		},
	}
}

func read(t *testing.T, text string, format Format) *List {
	t.Helper()
	l, problems, _ := Read([]byte(text), options(format))
	if l == nil {
		t.Fatalf("%+v", problems)
	}
	return l
}

func found(l *List, name string, want Scope) (out []string) {
	f := l.Find(name, want)
	for at, ok := f.Next(); ok; at, ok = f.Next() {
		item := l.At(at)
		out = append(out, fmt.Sprint(item.Ordinal, ":", item.Line, ":", item.Column, " ", item.Text))
	}
	return out
}

func TestFind(t *testing.T) {
	var b strings.Builder
	for i := range 1000 { // more than one mark, and a comment between
		fmt.Fprintf(&b, "n%d.test\n# %d\n", i, i)
	}
	b.WriteString("*.w.test\nn7.test\nUP.test\nn8.test:22\n a/b\nlast.test")
	l := read(t, b.String(), Rules)
	for name, want := range map[string]string{
		"n0.test":    "[0:1:1 n0.test]",
		"n7.test":    "[7:15:1 n7.test]",
		"n8.test":    "[8:17:1 n8.test 1003:2004:1 n8.test:22]",
		"n999.test":  "[999:1999:1 n999.test]",
		"last.test":  "[1005:2006:1 last.test]",
		"w.test":     "[]",
		"n1000.test": "[]",
		"999.test":   "[]",
		"n7.tes":     "[]",
		"up.test":    "[]",
	} {
		if got := fmt.Sprint(found(l, name, Apex)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := fmt.Sprint(found(l, "w.test", Below)); got != "[1000:2001:1 *.w.test]" {
		t.Errorf("below w.test: %s", got)
	}
	if l.Rules() != 1006 || l.Names() != 1003 || len(l.Others()) != 2 || l.Others()[1].Ordinal != 1004 || l.Others()[1].Column != 2 {
		t.Errorf("%d rules, %d names, others %+v", l.Rules(), l.Names(), l.Others())
	}
}

// A name with many ports neither grows its chain in the table without bound nor
// loses a rule, and a list of one name is searched in a moment.
func TestCrowded(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "a.test:%d\na.test\n", i+1)
	}
	l := read(t, b.String(), Rules)
	if n := len(found(l, "a.test", Apex)); n != maxSameName || n+len(l.Others()) != 2001 {
		t.Errorf("%d in the table, %d others", n, len(l.Others()))
	}
	kinds := map[Kind]int{}
	l.Each(func(_ Item, k Kind) bool { kinds[k]++; return true })
	if kinds[InTable] != maxSameName || kinds[Again] != 1999 || kinds[Other] != len(l.Others()) {
		t.Errorf("%v", kinds)
	}
}

// Several names a line make the table grow.
func TestSeveralNamesInALine(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "0.0.0.0 localhost a%d.test b%d.test c%d.test\n", i, i, i)
	}
	l := read(t, b.String(), Auto)
	for i := range 300 {
		want := fmt.Sprintf("[%d:%d:", 3*i+1, i+1)
		if got := fmt.Sprint(found(l, fmt.Sprintf("b%d.test", i), Apex)); !strings.HasPrefix(got, want) {
			t.Errorf("b%d.test: %s", i, got)
		}
	}
	if l.Names() != 900 || l.Format() != Hosts {
		t.Errorf("%d names, %s", l.Names(), l.Format())
	}
}

// What was left out does not count, and is left out again when a place is told.
func TestSkip(t *testing.T) {
	text := "*.com\na.test\n*.com:1\nb.test # *.com\n"
	if l, problems, _ := Read([]byte(text), options(Rules)); l != nil || len(problems) != 2 || problems[1].Line != 3 {
		t.Fatalf("%+v", problems)
	}
	o := options(Rules)
	o.Skip = true
	l, _, _ := Read([]byte(text), o)
	if got := fmt.Sprint(found(l, "b.test", Apex)); got != "[1:4:1 b.test]" || l.Skipped() != 2 {
		t.Errorf("%s, %d left out", got, l.Skipped())
	}
	n := 0
	l.Each(func(Item, Kind) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d rules", n)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]Format{
		"":                                    Rules,
		"# c\n\na.test\n0.0.0.0 b.test":       Rules,
		"10.0.0.1 # an address\n":             Rules,
		"GET https://a.test/**\n":             Rules,
		"# c\n0.0.0.0\ta.test\n":              Hosts,
		"::1 localhost\n":                     Hosts,
		"! c\na.test\n":                       Adblock,
		"||a.test^\n":                         Adblock,
		"[Adblock Plus 2.0]\n":                Adblock,
		"; zone\n$TTL 1\n":                    RPZ,
		"a.test 300 IN cname .\n":             RPZ,
		"@ IN SOA a. b. 1 2 3 4 5\n":          RPZ,
		"[2001:db8::1]:443\na.test CNAME .\n": Rules,
	} {
		if got := detect([]byte(text)); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestTooLong: a list that no offset could reach the end of is refused.
func TestTooLong(t *testing.T) {
	if l, problems, _ := Read(make([]byte, MaxBytes), options(Rules)); l != nil || len(problems) != 1 {
		t.Errorf("%+v", problems)
	}
}

// FuzzRead holds that every rule that Each tells is found in its place, whatever
// the text and its format.
func FuzzRead(f *testing.F) {
	f.Add("a.test\n*.b.test\nc.test:22 # x\n", uint8(1), false)
	f.Add("0.0.0.0 a.test localhost b.test\n10.0.0.1 c\n", uint8(2), true)
	f.Add("||a.test^\n||b.test^$important\n@@x\n", uint8(3), true)
	f.Add("@ SOA (\n1 )\na.test CNAME .\n*.a.test IN A 0.0.0.0\n", uint8(4), true)
	f.Fuzz(func(t *testing.T, text string, format uint8, skip bool) {
		o := options(Format(format % uint8(len(formatNames))))
		o.Skip = skip
		l, problems, _ := Read([]byte(text), o)
		if l == nil {
			if len(problems) == 0 || skip {
				t.Fatalf("no list and %d problems", len(problems))
			}
			return
		}
		n, names := 0, 0
		l.Each(func(item Item, k Kind) bool {
			if item.Ordinal != n {
				t.Fatalf("rule %d says it is %d", n, item.Ordinal)
			}
			n++
			if k != InTable {
				return true
			}
			names++
			name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(item.Text, "*"), "."), ":")
			for f := l.Find(name, Apex|Below); ; {
				at, ok := f.Next()
				if !ok {
					t.Fatalf("%+v is not found", item)
				}
				if l.At(at) == item {
					return true
				}
			}
		})
		if n != l.Rules() || names != l.Names() {
			t.Fatalf("%d rules and %d names, counted %d and %d", l.Rules(), l.Names(), n, names)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "host-%d.list%d.example.com\n", i, i%977)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if l, p, _ := Read([]byte(text.String()), options(Rules)); l == nil {
			b.Fatal(p)
		}
	}
}
