package names

import "testing"

// FuzzPlain holds that a plain name is its own canonical spelling, as text and as
// bytes.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a.example", "A.example", "a..b", "-a.b", "a.0x1f", "xn--a.b", "a_b.c", "1.2.3.4", "", "a."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Plain(s) != Plain([]byte(s)) {
			t.Fatalf("%q: text and bytes differ", s)
		}
		if name, err := Canonical(s); Plain(s) && (err != nil || name != s) {
			t.Fatalf("%q is plain, and canonical is %q, %v", s, name, err)
		}
	})
}
