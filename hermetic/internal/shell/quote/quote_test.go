package quote

import "testing"

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ in, single, double, backslash, key, ifNeeded string }{
		{"", "''", `""`, "''", `""`, "''"},
		{"a", "'a'", `"a"`, "a", "a", "a"},
		{"a b", "'a b'", `"a b"`, `a\ b`, `"a b"`, "'a b'"},
		{"it's", `'it'\''s'`, `"it's"`, `it\'s`, `"it's"`, `'it'\''s'`},
		{"$x\\", `'$x\'`, `"\$x\\"`, `\$x\\`, `"\$x\\"`, `'$x\'`},
		{"a\tb", `$'a\tb'`, `$'a\tb'`, `$'a\tb'`, `$'a\tb'`, `$'a\tb'`},
		{"\xff\x01", `$'\377\001'`, `$'\377\001'`, `$'\377\001'`, `$'\377\001'`, `$'\377\001'`},
		{"~", "'~'", `"~"`, `\~`, `"~"`, "'~'"},
	} {
		for _, got := range []struct{ by, text, want string }{
			{"Single", Single(tt.in), tt.single},
			{"Double", Double(tt.in), tt.double},
			{"Backslash", Backslash(tt.in), tt.backslash},
			{"Key", Key(tt.in), tt.key},
			{"IfNeeded", IfNeeded(tt.in), tt.ifNeeded},
		} {
			if got.text != got.want {
				t.Errorf("%s(%q) = %s, want %s", got.by, tt.in, got.text, got.want)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`a\tb`: "a\tb", `\x41\101\u00e9`: "AAé", `a\0b`: "a", `\cA`: "\x01", `\q`: `\q`, `\'`: "'", `\`: `\`, `\x{41}`: "A",
	} {
		if got := DecodeANSI(in); got != want {
			t.Errorf("DecodeANSI(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{`a\tb\\`: "a\tb\\", `\0101`: "A", `\101`: `\101`, `a\cb`: "a"} {
		got, stop := DecodeEcho(in)
		if got != want || stop != (in == `a\cb`) {
			t.Errorf("DecodeEcho(%q) = %q, %v, want %q", in, got, stop, want)
		}
	}
}

// What DecodeANSI makes of quoted text is the text.
func FuzzANSI(f *testing.F) {
	for _, s := range []string{"", "a", "\x00x", "é\xff\t'\\", "\x1b[0m", "\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for i := range len(s) {
			if s[i] == 0 { // a shell has no NUL
				return
			}
		}
		q := ansi(s)
		if got := DecodeANSI(q[2 : len(q)-1]); got != s {
			t.Errorf("%q is quoted as %s, which is %q", s, q, got)
		}
	})
}
