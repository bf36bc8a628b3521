package regex

import (
	"errors"
	"testing"
)

// FuzzFind looks for panics and for matches that the step count cannot stop.
func FuzzFind(f *testing.F) {
	f.Add(uint8(Extended), `(a|b)*\1[[:alpha:]]{2,3}$`, "abab")
	f.Add(uint8(SedBasic), `\(.*\)\n\1\x41[^]a]`, "a\na")
	f.Add(uint8(Perl), `(?<=a)(?>b*)c++|\d{2,}?\K\Q.\E`, "abbc12.")
	f.Fuzz(func(t *testing.T, syntax uint8, expr, text string) {
		left := int64(200_000)
		stop := errors.New("enough")
		re, err := Compile(expr, Options{Syntax: Syntax(syntax % 11), Steps: func(n int64) error {
			if left -= n; left < -1_000_000 {
				t.Fatal("a match went on after its steps were used up")
			}
			if left < 0 {
				return stop
			}
			return nil
		}})
		if err != nil {
			return
		}
		loc, err := re.Find([]byte(text), 0, 0)
		if err != nil || loc == nil {
			return
		}
		if len(loc) != 2*(re.Groups()+1) || loc[0] < 0 || loc[1] < loc[0] || loc[1] > len(text) {
			t.Fatalf("%q on %q: %v", expr, text, loc)
		}
	})
}
