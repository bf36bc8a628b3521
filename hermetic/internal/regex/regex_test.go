package regex

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// groups writes what matched as "0-3 1-2 -".
func groups(loc []int) string {
	if loc == nil {
		return "no"
	}
	var parts []string
	for i := 0; i < len(loc); i += 2 {
		if loc[i] < 0 {
			parts = append(parts, "-")
			continue
		}
		parts = append(parts, fmt.Sprintf("%d-%d", loc[i], loc[i+1]))
	}
	return strings.Join(parts, " ")
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		syntax     Syntax
		expr, text string
		want       string
	}{
		{Extended, "abc", "xabcx", "1-4"},
		{Extended, "", "abc", "0-0"},
		{Extended, "a|ab|abc", "abcd", "0-3"},
		{Extended, "(a|ab)(c|bcd)(d*)", "abcd", "0-4 0-2 2-3 3-4"},
		{Extended, "(a*)(ab)*(b*)", "abb", "0-3 0-1 - 1-3"},
		{Extended, "(a*)*", "b", "0-0 0-0"},
		{Extended, "(a*)+", "aa", "0-2 0-2"},
		{Extended, "x{2,3}", "xxxxx", "0-3"},
		{Extended, "(ab){2}", "ababab", "0-4 2-4"},
		{Extended, "^a$", "a", "0-1"},
		{Extended, "^a$", "a\na", "no"},
		{Extended, "[[:alpha:]]+", "12ab3", "2-4"},
		{Extended, "[]a]+", "x]a]", "1-4"},
		{Extended, "[^]a]+", "]xa", "1-2"},
		{Extended, "[a-]+", "b-a", "1-3"},
		{Extended, `\bfoo\b`, "afoo foo", "5-8"},
		{Extended, `\<o`, "foo o", "4-5"},
		{Extended, `o\>`, "of foo", "5-6"},
		{Extended, `\w+\W`, "ab é ", "0-3"},
		{Extended, `\wx`, "éx", "0-3"},
		{Extended, `(.)\1`, "abccd", "2-4 2-3"},
		{Extended, `(a*)\1`, "aaaaa", "0-4 0-2"},
		{Extended, "a)", "a)", "0-2"},
		{Extended, "é", "caf\xc3\xa9", "3-5"},
		{Extended, ".", "\xff", "no"},
		{Extended, "a.", "a\xffab", "2-4"},
		{Extended, "[^a]", "\xffa\xc3\xa9", "2-4"},
		{Extended, "\xff", "a\xff", "1-2"},
		{Extended, "a{1001}", strings.Repeat("a", 1500), "0-1001"},
		{Basic, `\(a\|b\)*c`, "abac", "0-4 2-3"},
		{Basic, `*a`, "b*a", "1-3"},
		{Basic, `\(*a\)`, "*a", "0-2 0-2"},
		{Basic, `a+b?`, "a+b?", "0-4"},
		{Basic, `a\+b\?`, "aab", "0-3"},
		{Basic, `a^b$c`, "a^b$c", "0-5"},
		{Basic, `\(^a\)`, "ba", "no"},
		{SedBasic, `^\(.*\)\n\1$`, "ab\nab", "0-5 0-2"},
		{Basic, `a\{,2\}`, "aaa", "0-2"},
		{SedBasic, `a\tb\x41[\n]`, "a\tbA\n", "0-5"},
		{Awk, `\y\/a\y`, "x/a b", "1-3"},
		{Awk, `[\]a]+`, "x]a", "1-3"},
		{GrepExtended, "a{x", "a{x", "0-3"},
		{Emacs, `a+\(b\|c\)`, "aac", "0-3 2-3"},
		{Fixed, "a.*[", "xa.*[", "1-5"},
		{Perl, `a.*?b`, "aabab", "0-3"},
		{Perl, `(?<=a)b(?!c)`, "bcabcab", "6-7"},
		{Perl, `\d+\K[a-z]`, "12a", "2-3"},
		{Perl, `(a|ab)(c|bcd)`, "abcd", "0-4 0-1 1-4"},
		{Perl, `(?i)FOO(?-i)b`, "foob", "0-4"},
		{Perl, `a++b|c`, "aac", "2-3"},
		{Perl, `(?<x>.)\k<x>`, "abb", "1-3 1-2"},
		{Perl, `\Qa.b\E+`, "a.bb", "0-4"},
		{Perl, `(?>a*)ab`, "aaab", "no"},
		{Perl, `(a?)*?b`, "aab", "0-3 1-2"},
		{Perl, `\x{e9}\p{Lu}`, "éÀ", "0-4"},
	} {
		re, err := Compile(c.expr, Options{Syntax: c.syntax})
		if err != nil {
			t.Errorf("%q: %v", c.expr, err)
			continue
		}
		loc, err := re.Find([]byte(c.text), 0, 0)
		if got := groups(loc); got != c.want || err != nil {
			t.Errorf("%d %q on %q: %s (%v), want %s", c.syntax, c.expr, c.text, got, err, c.want)
		}
		// The engine that goes back finds the same by itself.
		re.fast = &fast{}
		loc, err = re.Find([]byte(c.text), 0, 0)
		if got := groups(loc); got != c.want || err != nil {
			t.Errorf("%d %q on %q without RE2: %s (%v), want %s", c.syntax, c.expr, c.text, got, err, c.want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		syntax Syntax
		expr   string
		want   error
	}{
		{0, "a", errNoSyntax},
		{Extended, "*a", errRepeat},
		{Extended, "(*a)", errRepeat},
		{Extended, "a|*b", errRepeat},
		{Extended, "{1}a", errRepeat},
		{Extended, "a{x", errBrace},
		{Extended, "a{x}", errBadBrace},
		{Extended, "a{2,1}", errBadBrace},
		{Extended, "a{99999}", errTooBig},
		{SedExtended, "a)", errClose},
		{Extended, "(a", errParen},
		{Extended, "[a", errBracket},
		{Extended, `a\`, errTrailing},
		{Extended, "[[:foo:]]", errClass},
		{Extended, "[b-a]", errRange},
		{Extended, `\1`, errBackref},
		{Extended, `(a)\2`, errBackref},
		{Extended, `(a\1)`, errBackref},
		{Extended, "[[.zz.]]", errCollate},
		{Extended, "[[:alpha", errBracket},
		{GrepBasic, `a\{1,a`, errBrace},
		{Basic, `a\)`, errClose},
		{SedBasic, `\{1\}a`, errRepeat},
		{GrepBasic, "[:alpha:]", errClassForm},
		{Extended, strings.Repeat("(", 2000), errTooBig},
		{Extended, "((a{1000}){1000}){1000}", errTooBig},
		{Perl, "(", errPerlParen},
		{Perl, ")", errPerlClose},
		{Perl, "[a", errPerlBracket},
		{Perl, "+", errPerlRepeat},
		{Perl, "(?<=a*)b", errPerlBehind},
		{Perl, `\2`, errPerlBackref},
		{Perl, "(?R)", errPerlHere},
	} {
		if _, err := Compile(c.expr, Options{Syntax: c.syntax}); !errors.Is(err, c.want) {
			t.Errorf("%d %.20q: %v, want %v", c.syntax, c.expr, err, c.want)
		}
	}
}

func TestStepsStop(t *testing.T) {
	stop := errors.New("enough")
	for _, expr := range []string{`\(a*\)*\1b`, `\(.*\)\(.*\)\(.*\)\(.*\)\1\2\3\4xb\1`} {
		left := int64(1e6)
		re, err := Compile(expr, Options{Syntax: Basic, Steps: func(n int64) error {
			if left -= n; left < 0 {
				return stop
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := re.Match([]byte(strings.Repeat("a", 5000) + "xb")); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want the error of Steps", expr, err)
		}
	}
}

// A long line with many matches is paid for once, not at each of them; and RE2
// can be stopped in it.
func TestLongText(t *testing.T) {
	text := []byte(strings.Repeat(`{"name":"x y","n":12.5},`, 10_000))
	for _, expr := range []string{`n`, `"[a-z]+":`, `[0-9]+\.[0-9]+`, `"name":"([^"]*)"`} {
		var steps int64
		re, err := Compile(expr, Options{Syntax: Extended, Steps: func(n int64) error { steps += n; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		count, at := 0, 0
		for {
			loc, err := re.Find(text, at, 0)
			if err != nil {
				t.Fatal(err)
			}
			if loc == nil {
				break
			}
			count, at = count+1, loc[1]
		}
		if count < 10_000 || steps > 20_000_000 {
			t.Errorf("%s: %d matches in %d steps", expr, count, steps)
		}
	}
	enough, left := errors.New("enough"), 50
	re, err := Compile(`a[b-z]+c\.`, Options{Syntax: Extended, Steps: func(n int64) error {
		if left -= int(n); left < 0 {
			return enough
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Find(append(bytes.Repeat([]byte("abbb"), 100_000), 'c', '.', 'x'), 0, 0); !errors.Is(err, enough) || left < -100 {
		t.Errorf("%v with %d steps left", err, left)
	}
}
