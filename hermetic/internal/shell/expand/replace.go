package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/pattern"
	"egressd/hermetic/internal/shell/state"
)

// replace is ${x/pattern/with} and its variants.
func replace(sh *state.Shell, r *syntax.Replace, f *found) {
	pat := Pattern(sh, r.Orig)
	with, amp := replacement(sh, r.With)
	var anchor byte
	if !r.All && pat != "" && (pat[0] == '#' || pat[0] == '%') {
		anchor, pat = pat[0], pat[1:]
	}
	if pat == "" && anchor == 0 {
		f.each(func(s string) string { return s })
		return
	}
	c := Compile(sh, pat, sh.Options.Shopt["nocasematch"])
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
		sh.CheckLen(b.Len())
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
		return replaceIn(sh, s, c, r.All, put)
	})
}

// replaceIn replaces the first match of c in s, or all.
func replaceIn(sh *state.Shell, s string, c *pattern.Pattern, all bool, put func(*strings.Builder, string)) string {
	var b strings.Builder
	at := 0
	for n := 0; at <= len(s); n++ {
		if n&255 == 255 {
			sh.Check()
		}
		start, end, ok := c.Find(s, at)
		if !ok {
			break
		}
		if start == end { // an empty match counts only in an empty text
			if s != "" || n > 0 {
				if start >= len(s) {
					break
				}
				_, size := chars.First(s[start:])
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

// replacement expands the replacement text. amp reports whether an unquoted &
// in it stands for the match.
func replacement(sh *state.Shell, w *syntax.Word) (text string, amp bool) {
	if w == nil {
		return "", false
	}
	e := newExpansion(sh, false)
	e.word(w)
	f := &e.cur
	s := f.text.String()
	if !sh.Options.Shopt["patsub_replacement"] || strings.IndexByte(s, '&') < 0 {
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
