package expand

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/pattern"
	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// slice is ${x:offset:length}, in characters, or in elements of a list.
func slice(sh *state.Shell, p *syntax.ParamExp, f *found) {
	off := arithExpr(sh, p.Slice.Offset)
	var length int64
	hasLen := p.Slice.Length != nil
	if hasLen {
		length = arithExpr(sh, p.Slice.Length)
	}
	if f.list {
		sliceList(sh, p, f, off, length, hasLen)
		return
	}
	s := f.first()
	n := int64(chars.Count(s))
	from, to, ok := bounds(off, length, n, hasLen)
	if !ok {
		if hasLen && length < 0 && off >= 0 && off <= n {
			sh.Discardf("%d: substring expression < 0", length)
		}
		f.vals = []string{""}
		return
	}
	f.vals = []string{chars.Slice(s, int(from), int(to))}
}

// bounds is the part of n items that an offset and a length mean; false if
// there is none.
func bounds(off, length, n int64, hasLen bool) (from, to int64, ok bool) {
	if off < 0 {
		off += n
	}
	if off < 0 || off > n {
		return 0, 0, false
	}
	to = n
	if hasLen {
		if length < 0 {
			to = n + length
		} else if length < n-off {
			to = off + length
		}
	}
	return off, to, to >= off
}

// sliceList is slice of $@ or an array.
func sliceList(sh *state.Shell, p *syntax.ParamExp, f *found, off, length int64, hasLen bool) {
	if hasLen && length < 0 {
		sh.Discardf("%d: substring expression < 0", length)
	}
	vals := f.vals
	if !f.array {
		vals = append([]string{sh.Program.Arg0}, vals...) // ${@:0} begins with $0
		if off < 0 {
			off += int64(len(vals))
			if off < 0 {
				f.vals = nil
				return
			}
		}
	} else if f.v != nil && f.v.Kind == vars.Indexed {
		if off < 0 {
			if off += f.v.List.Next(); off < 0 {
				f.vals = nil
				return
			}
		}
		i, _ := f.v.List.Find(off)
		off = int64(i)
	}
	from, to, ok := bounds(off, length, int64(len(vals)), hasLen)
	if !ok {
		f.vals = nil
		return
	}
	f.vals = vals[from:to]
	if !f.array && off == 0 && !hasLen {
		f.vals = vals
	}
}

// each replaces every value.
func (f *found) each(change func(string) string) {
	if !f.list && len(f.vals) == 0 {
		f.vals = []string{""}
	}
	out := make([]string, len(f.vals))
	for i, v := range f.vals {
		out[i] = change(v)
	}
	f.vals = out
}

// operator is ${x#pattern}, ${x^^pattern}, ${x@Q} and their relatives.
func operator(sh *state.Shell, p *syntax.ParamExp, f *found) {
	op := p.Exp.Op
	if op == syntax.OtherParamOps {
		transform(sh, p, f)
		return
	}
	pat := Pattern(sh, p.Exp.Word)
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		c := Compile(sh, pat, sh.Options.Shopt["nocasematch"])
		f.each(func(s string) string {
			if n := c.Prefix(s, op == syntax.RemLargePrefix); n > 0 {
				return s[n:]
			}
			return s
		})
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		c := Compile(sh, pat, sh.Options.Shopt["nocasematch"])
		f.each(func(s string) string {
			if at := c.Suffix(s, op == syntax.RemLargeSuffix); at >= 0 {
				return s[:at]
			}
			return s
		})
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		change, all := unicode.ToUpper, op == syntax.UpperAll || op == syntax.LowerAll
		if op == syntax.LowerFirst || op == syntax.LowerAll {
			change = unicode.ToLower
		}
		if rest, ok := strings.CutPrefix(pat, scan.Toggled); ok {
			pat, change = rest, toggle
		}
		if pat == "" {
			pat = "?"
		}
		c := Compile(sh, pat, false)
		f.each(func(s string) string { return changeCase(s, c, change, all) })
	default:
		badSubst(sh, p)
	}
}

// toggle changes the case of a letter.
func toggle(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// changeCase changes the characters of s that c matches, or the first alone.
func changeCase(s string, c *pattern.Pattern, change func(rune) rune, all bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := chars.First(s[i:])
		if (all || i == 0) && r != utf8.RuneError && c.Match(s[i:i+size]) {
			b.WriteRune(change(r))
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
