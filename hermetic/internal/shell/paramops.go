package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/pattern"
	"egressd/hermetic/internal/shell/scan"
)

// slice is ${x:o:l}, by characters, or by elements of a list.
func (sh *shell) slice(p *syntax.ParamExp, f *found) {
	off := sh.arithExpr(p.Slice.Offset)
	var length int64
	hasLen := p.Slice.Length != nil
	if hasLen {
		length = sh.arithExpr(p.Slice.Length)
	}
	if f.list {
		sh.sliceList(p, f, off, length, hasLen)
		return
	}
	s := f.first()
	n := int64(charCount(s))
	from, to, ok := bounds(off, length, n, hasLen)
	if !ok {
		if hasLen && length < 0 && off >= 0 && off <= n {
			sh.discardf("%d: substring expression < 0", length)
		}
		f.vals = []string{""}
		return
	}
	f.vals = []string{charRange(s, int(from), int(to))}
}

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

func (sh *shell) sliceList(p *syntax.ParamExp, f *found, off, length int64, hasLen bool) {
	if hasLen && length < 0 {
		sh.discardf("%d: substring expression < 0", length)
	}
	vals := f.vals
	if !f.array {
		vals = append([]string{sh.run.arg0}, vals...) // $0 is before $1
		if off < 0 {
			off += int64(len(vals))
			if off < 0 {
				f.vals = nil
				return
			}
		}
	} else if f.v != nil && f.v.kind == indexedVar {
		if off < 0 {
			if off += f.v.list.next(); off < 0 {
				f.vals = nil
				return
			}
		}
		i, _ := f.v.list.find(off)
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

// each replaces every value of a found parameter.
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

// replace is ${x/pat/with} and its forms.
func (sh *shell) replace(r *syntax.Replace, f *found) {
	pat := sh.patternOf(r.Orig)
	with, amp := sh.replacement(r.With)
	var anchor byte
	if !r.All && pat != "" && (pat[0] == '#' || pat[0] == '%') {
		anchor, pat = pat[0], pat[1:]
	}
	if pat == "" && anchor == 0 {
		f.each(func(s string) string { return s })
		return
	}
	c := sh.compile(pat, sh.shopts["nocasematch"])
	put := func(b *strings.Builder, match string) {
		if !amp {
			b.WriteString(with)
		} else {
			for i := 0; i < len(with); i++ {
				switch {
				case with[i] == '\\' && i+1 < len(with) && (with[i+1] == '&' || with[i+1] == '\\'):
					i++
					b.WriteByte(with[i])
				case with[i] == '&':
					b.WriteString(match)
				default:
					b.WriteByte(with[i])
				}
			}
		}
		sh.checkLen(b.Len())
	}
	f.each(func(s string) string {
		var b strings.Builder
		switch anchor {
		case '#':
			if n := c.Prefix(s, true); n >= 0 {
				put(&b, s[:n])
				return b.String() + s[n:]
			}
			return s
		case '%':
			if at := c.Suffix(s, true); at >= 0 {
				b.WriteString(s[:at])
				put(&b, s[at:])
				return b.String()
			}
			return s
		}
		return sh.replaceIn(s, c, r.All, put)
	})
}

func (sh *shell) replaceIn(s string, c *pattern.Pattern, all bool, put func(*strings.Builder, string)) string {
	var b strings.Builder
	at := 0
	for n := 0; at <= len(s); n++ {
		if n&255 == 255 {
			sh.check()
		}
		start, end, ok := c.Find(s, at)
		if !ok {
			break
		}
		if start == end { // an empty match is none, but in an empty text
			if s != "" || n > 0 {
				if start >= len(s) {
					break
				}
				_, size := firstRune(s[start:])
				b.WriteString(s[at : start+size])
				at = start + size
				continue
			}
		}
		b.WriteString(s[at:start])
		put(&b, s[start:end])
		at = end
		if !all || start == end {
			break
		}
	}
	if at < len(s) {
		b.WriteString(s[at:])
	}
	return b.String()
}

// replacement expands the text to put in; amp says that an unquoted & in it is
// what matched.
func (sh *shell) replacement(w *syntax.Word) (text string, amp bool) {
	if w == nil {
		return "", false
	}
	e := sh.expander(false)
	e.word(w)
	f := &e.cur
	s := f.text.String()
	if !sh.shopts["patsub_replacement"] || strings.IndexByte(s, '&') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if f.quoted != nil && f.quoted[i] && (s[i] == '&' || s[i] == '\\') {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// operator is ${x#pat}, ${x^^pat}, ${x@Q} and the like.
func (sh *shell) operator(p *syntax.ParamExp, f *found) {
	op := p.Exp.Op
	if op == syntax.OtherParamOps {
		sh.transform(p, f)
		return
	}
	pat := sh.patternOf(p.Exp.Word)
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		c := sh.compile(pat, sh.shopts["nocasematch"])
		f.each(func(s string) string {
			if n := c.Prefix(s, op == syntax.RemLargePrefix); n > 0 {
				return s[n:]
			}
			return s
		})
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		c := sh.compile(pat, sh.shopts["nocasematch"])
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
		c := sh.compile(pat, false)
		f.each(func(s string) string { return changeCase(s, c, change, all) })
	default:
		sh.badSubst(p)
	}
}

// toggle is the other case of a letter.
func toggle(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func changeCase(s string, c *pattern.Pattern, change func(rune) rune, all bool) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := firstRune(s[i:])
		if (all || i == 0) && r != utf8.RuneError && c.Match(s[i:i+size]) {
			b.WriteRune(change(r))
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// transform is ${x@Q} and its like.
func (sh *shell) transform(p *syntax.ParamExp, f *found) {
	op := ""
	if p.Exp.Word != nil {
		op = p.Exp.Word.Lit()
	}
	if !f.isSet && !f.list && op != "a" && op != "A" {
		f.vals = nil
		return
	}
	switch op {
	case "Q":
		f.each(quoteSingle)
	case "U":
		f.each(strings.ToUpper)
	case "L":
		f.each(strings.ToLower)
	case "u":
		f.each(func(s string) string {
			if s == "" {
				return s
			}
			r, size := firstRune(s)
			if r == utf8.RuneError {
				return s
			}
			return string(unicode.ToUpper(r)) + s[size:]
		})
	case "E":
		f.each(ansiC)
	case "P":
		f.each(sh.prompt)
	case "a":
		flags := ""
		if f.v != nil {
			flags = strings.Trim(f.v.flags(), "-")
		}
		if f.list && f.v != nil {
			f.each(func(string) string { return flags })
			return
		}
		f.vals = []string{flags}
	case "A":
		sh.assignable(f)
	case "K", "k":
		sh.pairsOf(f, op == "k")
	default:
		sh.badSubst(p)
	}
}

// assignable is ${x@A}: a command that makes the variable again.
func (sh *shell) assignable(f *found) {
	if f.name == "" {
		if f.list {
			quoted := make([]string, len(f.vals))
			for i, v := range f.vals {
				quoted[i] = quoteSingle(v)
			}
			f.vals = []string{"set -- " + strings.Join(quoted, " ")}
			f.list = false
		}
		return
	}
	if f.v == nil {
		f.vals = nil
		return
	}
	if f.list {
		f.vals, f.list = []string{declareLine(f.name, f.v, "declare")}, false
		return
	}
	flags := f.v.flags()
	s := f.name + "=" + quoteSingle(f.first())
	if flags != "-" {
		s = "declare -" + flags + " " + s
	}
	f.vals = []string{s}
}

func (sh *shell) pairsOf(f *found, separate bool) {
	if !f.array || !f.list || f.v == nil {
		f.each(quoteSingle)
		return
	}
	keys, vals := f.v.keys(), f.v.values()
	var out []string
	for i := range keys {
		if separate {
			out = append(out, keys[i], vals[i])
			continue
		}
		k := keys[i]
		if f.v.kind == assocVar {
			k = quoteKey(k)
		}
		out = append(out, k+" "+quoteDouble(vals[i]))
	}
	if separate {
		f.vals = out
		return
	}
	sep := " "
	if f.v.kind == assocVar && len(out) > 0 {
		f.vals, f.list = []string{strings.Join(out, sep) + " "}, false
		return
	}
	f.vals, f.list = []string{strings.Join(out, sep)}, false
}
