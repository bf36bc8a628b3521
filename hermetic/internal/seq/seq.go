package seq

import (
	"math"
	"math/big"
	"strings"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/printf"
)

// seqArg is one number as it was given.
type seqArg struct {
	text  string
	value gnu.Float
	width int
	prec  int // digits after the point; math.MaxInt: not known
}

type seqWant struct {
	sep    string
	equal  bool
	format string
}

func seq(w *gnu.Work) {
	for i, a := range w.Args { // a negative number is no option
		if i > 0 && len(a) > 1 && a[0] == '-' && (a[1] == '.' || a[1] >= '0' && a[1] <= '9') && !seqValue(w.Args[i-1]) {
			w.Args = append(append(append([]string{}, w.Args[:i]...), "--"), w.Args[i:]...)
			break
		}
		if i > 0 && (a == "--" || a != "" && a[0] != '-' && !seqValue(w.Args[i-1])) {
			break
		}
	}
	sets, operands, ok := w.Options("[OPTION]... LAST\n  or:  seq [OPTION]... FIRST LAST\n  or:  seq [OPTION]... FIRST INCREMENT LAST", "+f:,format: s:,separator: w,equal-width")
	if !ok {
		return
	}
	want := seqWant{sep: "\n"}
	for _, o := range sets {
		switch o.Name {
		case "format":
			want.format = o.Value
		case "separator":
			want.sep = o.Value
		case "equal-width":
			want.equal = true
		}
	}
	if len(operands) == 0 {
		w.TryHelp("missing operand")
		return
	}
	if w.Extra(operands, 3) {
		return
	}
	var f *seqFormat
	if want.format != "" {
		if f = parseSeqFormat(w, want.format); f == nil {
			return
		}
		if want.equal {
			w.TryHelp("format string may not be specified when printing equal width strings")
			return
		}
	}
	args := [3]seqArg{{"1", gnu.NewFloat(1), 1, 0}, {"1", gnu.NewFloat(1), 1, 0}, {}}
	at := [][]int{{2}, {0, 2}, {0, 1, 2}}[len(operands)-1]
	for i, text := range operands {
		if args[at[i]], ok = parseSeqArg(w, text); !ok {
			return
		}
	}
	if args[1].value.V.Sign() == 0 {
		w.TryHelp("invalid Zero increment value: %s", gnu.Quote(args[1].text))
		return
	}
	if f == nil && want.integers(w, args) {
		return
	}
	if f == nil {
		f = want.defaultFormat(args)
	}
	want.run(w, args, f)
}

// seqValue reports whether a is an option whose value comes next.
func seqValue(a string) bool {
	return a == "-s" || a == "-f" || a == "--separator" || a == "--format"
}

func parseSeqArg(w *gnu.Work, text string) (seqArg, bool) {
	v, n := gnu.ParseFloat(text)
	if n == 0 || n != len(text) {
		w.TryHelp("invalid floating point argument: %s", gnu.Quote(text))
		return seqArg{}, false
	}
	if v.NaN {
		w.TryHelp("invalid %s argument: %s", gnu.Quote("not-a-number"), gnu.Quote(text))
		return seqArg{}, false
	}
	text = strings.TrimLeft(text, " \t\n\v\f\r+")
	a := seqArg{text: text, value: v, prec: math.MaxInt}
	point := strings.IndexByte(text, '.')
	if point < 0 && !strings.Contains(text, "p") {
		a.prec = 0
	}
	if strings.ContainsAny(text, "xX") || v.V.IsInf() {
		return a, true
	}
	a.width = len(text)
	fraction := 0
	e := strings.IndexAny(text, "eE")
	if point >= 0 {
		end := len(text)
		if e >= 0 {
			end = e
		}
		fraction = end - point - 1
		a.prec = fraction
		switch {
		case fraction == 0:
			a.width--
		case point == 0 || text[point-1] < '0' || text[point-1] > '9':
			a.width++
		}
	}
	if e >= 0 {
		a.exponent(text, e, point, fraction)
	}
	return a, true
}

// exponent corrects width and precision for "1e3" and the like.
func (a *seqArg) exponent(text string, e, point, fraction int) {
	x := 0
	for _, c := range strings.TrimLeft(text[e+1:], "+-") {
		x = min(x*10+int(c-'0'), 1<<20)
	}
	negative := text[e+1] == '-'
	a.width -= len(text) - e
	if negative {
		a.prec += x
		if point < 0 || e == point+1 {
			a.width++
		}
	} else {
		a.prec -= min(a.prec, x)
		if point >= 0 && a.prec == 0 && fraction > 0 {
			a.width--
		}
		x -= min(fraction, x)
	}
	a.width += x
}

// integers counts without floating point when all three are whole numbers in
// plain digits; false: they are not.
func (s seqWant) integers(w *gnu.Work, args [3]seqArg) bool {
	var n [3]*big.Int
	for i, a := range args {
		v, ok := new(big.Int).SetString(a.text, 10)
		if !ok || a.text[0] == '-' && a.text == "-0" {
			return false
		}
		n[i] = v
	}
	x, step, last := n[0], n[1], n[2]
	width := 0
	if s.equal {
		width = max(args[0].width, args[2].width)
	}
	printed := false
	for x.Cmp(last)*step.Sign() <= 0 {
		if printed {
			w.Out.WriteString(s.sep)
		}
		text := x.String()
		if pad := width - len(text); pad > 0 {
			if text[0] == '-' {
				w.Out.WriteByte('-')
				text = text[1:]
			}
			w.Out.WriteString(strings.Repeat("0", pad))
		}
		if _, err := w.Out.WriteString(text); err != nil || w.Ctx.Err() != nil {
			return true
		}
		printed = true
		x.Add(x, step)
	}
	if printed {
		w.Out.WriteByte('\n')
	}
	return true
}

// mostPadding bounds the width and the precision of a format.
const mostPadding = 1 << 20

// seqFormat is a printf format with one directive.
type seqFormat struct {
	before, after string
	printf.Directive
}

func (f *seqFormat) text(v gnu.Float) string { return f.Float(v) }

func (s seqWant) defaultFormat(args [3]seqArg) *seqFormat {
	first, last := args[0], args[2]
	prec := max(first.prec, args[1].prec)
	if prec == math.MaxInt || last.prec == math.MaxInt {
		return &seqFormat{Directive: printf.Directive{Prec: -1, Verb: 'g'}}
	}
	f := &seqFormat{Directive: printf.Directive{Prec: min(prec, mostPadding), Verb: 'f'}}
	if s.equal {
		a := first.width + prec - first.prec
		b := last.width + prec - last.prec
		switch {
		case last.prec > 0 && prec == 0:
			b--
		case last.prec == 0 && prec > 0:
			b++
		}
		if first.prec == 0 && prec > 0 {
			a++
		}
		f.Zero, f.Width = true, min(max(a, b), mostPadding)
	}
	return f
}

func parseSeqFormat(w *gnu.Work, s string) *seqFormat {
	f := &seqFormat{}
	fail := func(why string) *seqFormat {
		w.Die(1, "format %s %s", gnu.Quote(s), why)
		return nil
	}
	i := 0
	for ; ; i++ {
		if i >= len(s) {
			return fail("has no % directive")
		}
		if s[i] == '%' {
			if i+1 < len(s) && s[i+1] == '%' {
				i++
			} else {
				break
			}
		}
		f.before += s[i : i+1]
	}
	star := func() (int, bool) { return 0, false }
	d, n := printf.Syntax{Lengths: "L", Star: star}.Parse(s[i:])
	switch {
	case n == 0:
		return fail("has unknown %* directive")
	case strings.Contains(s[i:i+n], "LL"):
		return fail("has unknown %L directive")
	case d.Verb == 0:
		return fail("ends in %")
	case strings.IndexByte("efgaEFGA", d.Verb) < 0:
		return fail("has unknown %" + s[i+n-1:i+n] + " directive")
	}
	d.Width, d.Prec = min(d.Width, mostPadding), min(d.Prec, mostPadding)
	f.Directive = d
	for i += n; i < len(s); i++ {
		if s[i] == '%' {
			if i+1 >= len(s) || s[i+1] != '%' {
				return fail("has too many % directives")
			}
			i++
		}
		f.after += s[i : i+1]
	}
	return f
}

// run counts in long double as seq does: first + i * step, and a last number
// that only looks beyond the end is printed.
func (s seqWant) run(w *gnu.Work, args [3]seqArg, f *seqFormat) {
	first, step, last := args[0].value.V, args[1].value.V, args[2].value.V
	beyond := func(x *big.Float) bool { return x.Cmp(last)*step.Sign() > 0 }
	if beyond(first) {
		return
	}
	newFloat := func() *big.Float { return new(big.Float).SetPrec(gnu.FloatBits) }
	x := first
	for i := int64(1); ; i++ {
		text := f.text(gnu.Float{V: x})
		if _, err := w.Out.WriteString(f.before + text + f.after); err != nil || w.Ctx.Err() != nil {
			return
		}
		if beyond(x) {
			break
		}
		if step.IsInf() {
			x = step
		} else {
			x = newFloat().Mul(newFloat().SetInt64(i), step)
			if x = x.Add(x, first); x.Prec() == 0 {
				break
			}
		}
		if beyond(x) {
			next := f.text(gnu.Float{V: x})
			v, _ := gnu.ParseFloat(next)
			if next == text || v.V.Cmp(last) != 0 {
				break
			}
		}
		w.Out.WriteString(s.sep)
	}
	w.Out.WriteByte('\n')
}

func yes(w *gnu.Work) {
	_, operands, ok := w.Options("[STRING]...", "")
	if !ok {
		return
	}
	line := "y\n"
	if len(operands) > 0 {
		line = strings.Join(operands, " ") + "\n"
	}
	chunk := []byte(strings.Repeat(line, max(1, 8192/len(line))))
	for w.Ctx.Err() == nil {
		if _, err := w.Out.Write(chunk); err != nil {
			return
		}
	}
}
