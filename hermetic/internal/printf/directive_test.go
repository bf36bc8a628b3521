package printf

import (
	"strconv"
	"strings"
	"testing"

	"egressd/hermetic/internal/gnu"
)

// What printf of GNU coreutils 9.1 on x86-64 prints.
var integers = []struct{ format, argument, want string }{
	{`%d`, `0`, "0"},
	{`%+d`, `5`, "+5"},
	{`%-05d`, `42`, "42   "},
	{`%05d`, `-42`, "-0042"},
	{`%+05d`, `42`, "+0042"},
	{`%.3d`, `5`, "005"},
	{`%08.3d`, `-5`, "    -005"},
	{`%.0d`, `0`, ""},
	{`%5.0d`, `0`, "     "},
	{`%x`, `255`, "ff"},
	{`%#x`, `255`, "0xff"},
	{`%#X`, `255`, "0XFF"},
	{`%#x`, `0`, "0"},
	{`%#010x`, `255`, "0x000000ff"},
	{`%#-10x`, `255`, "0xff      "},
	{`%#o`, `8`, "010"},
	{`%#o`, `0`, "0"},
	{`%#.0o`, `0`, "0"},
	{`%#.5o`, `8`, "00010"},
	{`%.10x`, `255`, "00000000ff"},
	{`%u`, `-1`, "18446744073709551615"},
	{`%i`, `-9223372036854775808`, "-9223372036854775808"},
	{`%30.20d`, `7`, "          00000000000000000007"},
	{`% d`, `5`, " 5"},
}

// What the same printf prints of long doubles.
var floats = []struct{ format, argument, want string }{
	{`%+.3e`, `1234.5`, "+1.234e+03"},
	{`%e`, `0`, "0.000000e+00"},
	{`%.0e`, `15`, "2e+01"},
	{`%#.0e`, `0.1`, "1.e-01"},
	{`%f`, `0.1`, "0.100000"},
	{`%.20f`, `0.5`, "0.50000000000000000000"},
	{`%.0f`, `2.5`, "2"},
	{`%.0f`, `3.5`, "4"},
	{`%#.0f`, `1`, "1."},
	{`%010.2f`, `-3.14159`, "-000003.14"},
	{`%+08.2f`, `3.14159`, "+0003.14"},
	{`%-8.2f`, `3.14159`, "3.14    "},
	{`%g`, `100000`, "100000"},
	{`%g`, `1000000`, "1e+06"},
	{`%g`, `0.0001`, "0.0001"},
	{`%g`, `0.00001`, "1e-05"},
	{`%#g`, `1`, "1.00000"},
	{`%.0g`, `123`, "1e+02"},
	{`%.10g`, `1234567`, "1234567"},
	{`%G`, `1e-10`, "1E-10"},
	{`%g`, `9.9999995`, "10"},
	{`%a`, `1`, "0x8p-3"},
	{`%A`, `0.5`, "0X8P-4"},
	{`%.3a`, `1`, "0x8.000p-3"},
	{`%020a`, `1`, "0x000000000000008p-3"},
	{`%f`, `inf`, "inf"},
	{`%F`, `-inf`, "-INF"},
	{`%05f`, `inf`, "  inf"},
	{`%+f`, `inf`, "+inf"},
	{`%e`, `nan`, "nan"},
	{`%G`, `nan`, "NAN"},
	{`%08g`, `-nan`, "    -nan"},
	{`%f`, `-0`, "-0.000000"},
}

// What awk prints of doubles (mawk 1.3.4, which leaves the formatting to C; the %a
// are of printf of glibc 2.36).
var doubles = []struct{ format, argument, want string }{
	{`%e`, `0.1`, "1.000000e-01"},
	{`%.20f`, `0.1`, "0.10000000000000000555"},
	{`%.0e`, `0.1`, "1e-01"},
	{`%#.0e`, `0.1`, "1.e-01"},
	{`%#.0f`, `3`, "3."},
	{`%#.3g`, `1`, "1.00"},
	{`%#g`, `1e10`, "1.00000e+10"},
	{`%g`, `1e10`, "1e+10"},
	{`%.17g`, `0.1`, "0.10000000000000001"},
	{`%.30f`, `1e-5`, "0.000010000000000000000818030539"},
	{`%a`, `1`, "0x1p+0"},
	{`%a`, `0.1`, "0x1.999999999999ap-4"},
	{`%A`, `10.5`, "0X1.5P+3"},
	{`%.2a`, `1.999`, "0x2.00p+0"},
	{`%#.0a`, `1`, "0x1.p+0"},
	{`%020a`, `-1`, "-0x00000000000001p+0"},
	{`%a`, `1e300`, "0x1.7e43c8800759cp+996"},
	{`%g`, `123456789`, "1.23457e+08"},
	{`%.60g`, `0.1`, "0.1000000000000000055511151231257827021181583404541015625"},
	{`%+010.1f`, `-0.05`, "-0000000.1"},
	{`% g`, `2.5`, " 2.5"},
}

func parsed(t *testing.T, format string) Directive {
	t.Helper()
	d, n := Syntax{Lengths: "hlLjzt"}.Parse(format)
	if n != len(format) || d.Verb != format[n-1] {
		t.Fatalf("%s: %d bytes are read, as %+v", format, n, d)
	}
	return d
}

func TestIntegers(t *testing.T) {
	for _, c := range integers {
		d := parsed(t, c.format)
		n, err := strconv.ParseInt(c.argument, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		got := d.Uint(uint64(n))
		if d.Verb == 'd' || d.Verb == 'i' {
			got = d.Int(n)
		}
		if got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.format, c.argument, got, c.want)
		}
	}
}

func TestFloats(t *testing.T) {
	for _, c := range floats {
		f, n := gnu.ParseFloat(c.argument)
		if n != len(c.argument) {
			t.Fatalf("%s: %d bytes are read", c.argument, n)
		}
		if got := parsed(t, c.format).Float(f); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.format, c.argument, got, c.want)
		}
	}
	for _, c := range doubles {
		f, err := strconv.ParseFloat(c.argument, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed(t, c.format).Double(f); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.format, c.argument, got, c.want)
		}
	}
}

func TestBigPrecision(t *testing.T) {
	half := gnu.NewFloat(0.5)
	for format, want := range map[string]string{
		"%.5000f": "0.5" + strings.Repeat("0", 4999),
		"%.5000e": "5." + strings.Repeat("0", 5000) + "e-01",
		"%.5000g": "0.5",
		"%.5000a": "0x8." + strings.Repeat("0", 5000) + "p-4",
	} {
		if got := parsed(t, format).Float(half); got != want {
			t.Errorf("%s: %d bytes, want %d", format, len(got), len(want))
		}
	}
	if got, want := parsed(t, "%.5000d").Int(-7), "-"+strings.Repeat("0", 4999)+"7"; got != want {
		t.Errorf("%%.5000d: %d bytes, want %d", len(got), len(want))
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		format, text string
		length       int
		want         string
	}{
		{"%5s", "ab", 2, "   ab"},
		{"%-5s", "ab", 2, "ab   "},
		{"%1s", "ab", 2, "ab"},
		{"%05s", "ab", 2, "   ab"}, // 0 fills numbers alone
		{"%3s", "é", 2, " é"},
		{"%3s", "é", 1, "  é"},
	} {
		if got := parsed(t, c.format).Pad(c.text, c.length); got != c.want {
			t.Errorf("%s of %q as %d: %q, want %q", c.format, c.text, c.length, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	stars := func(n ...int) func() (int, bool) {
		return func() (int, bool) {
			if len(n) == 0 {
				return 0, false
			}
			v := n[0]
			n = n[1:]
			return v, true
		}
	}
	for _, c := range []struct {
		format string
		star   func() (int, bool)
		want   Directive
		length int
	}{
		{"%d", nil, Directive{Prec: -1, Verb: 'd'}, 2},
		{"%-+ #0'5.2f!", nil, Directive{Minus: true, Plus: true, Space: true, Alt: true, Zero: true, Width: 5, Prec: 2, Verb: 'f'}, 11},
		{"%.f", nil, Directive{Verb: 'f'}, 3},
		{"%lld", nil, Directive{Prec: -1, Verb: 'd'}, 4},
		{"%q", nil, Directive{Prec: -1, Verb: 'q'}, 2},
		{"%*.*f", stars(8, 3), Directive{Width: 8, Prec: 3, Verb: 'f'}, 5},
		{"%*d", stars(-8), Directive{Minus: true, Width: 8, Prec: -1, Verb: 'd'}, 3},
		{"%.*f", stars(-3), Directive{Prec: -1, Verb: 'f'}, 4},
		{"%.*f", stars(), Directive{}, 0},
		{"%5", nil, Directive{Width: 5, Prec: -1}, 2},
		{"%99999999999999999999d", nil, Directive{Width: Unbounded, Prec: -1, Verb: 'd'}, 22},
		{"%.99999999999999999999d", nil, Directive{Prec: Unbounded, Verb: 'd'}, 23},
		{"%9(%F %T)T", nil, Directive{Width: 9, Prec: -1, Verb: 'T', Time: "%F %T"}, 10},
		{"%()T", nil, Directive{Prec: -1, Verb: 'T'}, 4},
		{"%(%F", nil, Directive{Prec: -1, Verb: '('}, 2},
	} {
		d, n := Syntax{Lengths: "hlL", Time: true, Star: c.star}.Parse(c.format)
		if n != c.length || n > 0 && d != c.want {
			t.Errorf("%s: %+v of %d bytes, want %+v of %d", c.format, d, n, c.want, c.length)
		}
	}
}
