package awk

import (
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// refill makes a hold what fill sets.
func (in *interp) refill(a *value.Array, values []string, first int) error {
	for k := range a.M {
		in.size -= int64(len(k) + cellSize)
	}
	clear(a.M)
	for i, v := range values {
		c, err := in.at(a, itoa(first+i))
		if err != nil {
			return err
		}
		c.V = value.Input(v)
	}
	return nil
}

// splitCall is split and patsplit.
func (in *interp) splitCall(e *syntax.BuiltinExpr) (value.Value, error) {
	v, err := in.eval(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	s := v.Text(in.convfmt)
	a, err := in.arrayArg(e.Args[1])
	if err != nil {
		return value.Value{}, err
	}
	parts, seps, err := in.splitParts(e, s)
	if err != nil {
		return value.Value{}, err
	}
	if len(e.Args) > 3 {
		sa, err := in.arrayArg(e.Args[3])
		if err != nil {
			return value.Value{}, err
		}
		first := 1
		if len(seps) > len(parts) { // what is before the first
			first = 0
		}
		if err := in.refill(sa, seps, first); err != nil {
			return value.Value{}, err
		}
	}
	return value.Num(float64(len(parts))), in.refill(a, parts, 1)
}

func (in *interp) splitParts(e *syntax.BuiltinExpr, s string) (parts, seps []string, err error) {
	if e.Name == "patsplit" {
		src := in.rec.fpat
		if len(e.Args) > 2 {
			if src, err = in.regexSource(e.Args[2]); err != nil {
				return nil, nil, err
			}
		}
		return in.splitContent(s, src)
	}
	if len(e.Args) < 3 {
		return in.splitBy(s, in.rec.fs, in.rec.rs.paragraph)
	}
	if re, ok := e.Args[2].(*syntax.RegexExpr); ok {
		if re.Src == "" {
			return in.splitBy(s, "", false)
		}
		return in.splitRegex(s, re.Src)
	}
	fs, err := in.regexSource(e.Args[2])
	if err != nil {
		return nil, nil, err
	}
	return in.splitBy(s, fs, false)
}

// matchCall is match(s, re [, array]).
func (in *interp) matchCall(e *syntax.BuiltinExpr) (value.Value, error) {
	v, err := in.eval(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	s := v.Text(in.convfmt)
	src, err := in.regexSource(e.Args[1])
	if err != nil {
		return value.Value{}, err
	}
	re, err := in.compile(src)
	if err != nil {
		return value.Value{}, err
	}
	loc, err := re.Find([]byte(s), 0, 0)
	if err != nil {
		return value.Value{}, err
	}
	start, length := 0, -1
	if loc != nil {
		start, length = in.runes(s[:loc[0]])+1, in.runes(s[loc[0]:loc[1]])
	}
	if len(e.Args) > 2 {
		a, err := in.arrayArg(e.Args[2])
		if err != nil {
			return value.Value{}, err
		}
		if err := in.matchArray(a, s, loc); err != nil {
			return value.Value{}, err
		}
	}
	if err := in.setGlobal("RSTART", value.Num(float64(start))); err != nil {
		return value.Value{}, err
	}
	return value.Num(float64(start)), in.setGlobal("RLENGTH", value.Num(float64(length)))
}

func (in *interp) matchArray(a *value.Array, s string, loc []int) error {
	if err := in.refill(a, nil, 0); err != nil {
		return err
	}
	for i := 0; 2*i < len(loc); i++ {
		if loc[2*i] < 0 {
			continue
		}
		text := s[loc[2*i]:loc[2*i+1]]
		a.Set(itoa(i), value.Input(text))
		a.Set(itoa(i)+in.subsep+"start", value.Num(float64(in.runes(s[:loc[2*i]])+1)))
		a.Set(itoa(i)+in.subsep+"length", value.Num(float64(in.runes(text))))
	}
	return nil
}

// subCall is sub and gsub.
func (in *interp) subCall(e *syntax.BuiltinExpr) (value.Value, error) {
	src, err := in.regexSource(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	re, err := in.eval(e.Args[1])
	if err != nil {
		return value.Value{}, err
	}
	var target syntax.Expr = &syntax.FieldExpr{Index: &syntax.NumExpr{V: value.Num(0)}}
	if len(e.Args) > 2 {
		target = e.Args[2]
	}
	v, err := in.eval(target)
	if err != nil {
		return value.Value{}, err
	}
	nth := 1
	if e.Name == "gsub" {
		nth = 0
	}
	out, n, err := in.replace(src, re.Text(in.convfmt), v.Text(in.convfmt), nth, false)
	if err != nil || n == 0 {
		return value.Num(0), err
	}
	if !syntax.IsTarget(target) {
		if g, ok := target.(*syntax.GroupExpr); !ok || len(g.List) != 1 || !syntax.IsTarget(g.List[0]) {
			return value.Num(float64(n)), nil
		}
	}
	return value.Num(float64(n)), in.assignTo(target, value.Str(out))
}

// gensub is gensub(re, replacement, how [, target]).
func (in *interp) gensub(e *syntax.BuiltinExpr) (value.Value, error) {
	src, err := in.regexSource(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	with, err := in.eval(e.Args[1])
	if err != nil {
		return value.Value{}, err
	}
	how, err := in.eval(e.Args[2])
	if err != nil {
		return value.Value{}, err
	}
	target := value.Input(in.rec.Text())
	if len(e.Args) > 3 {
		if target, err = in.eval(e.Args[3]); err != nil {
			return value.Value{}, err
		}
	}
	nth := max(int(how.Number()), 1)
	if t := how.Text(in.convfmt); t != "" && (t[0] == 'g' || t[0] == 'G') {
		nth = 0
	}
	out, _, err := in.replace(src, with.Text(in.convfmt), target.Text(in.convfmt), nth, true)
	return value.Str(out), err
}

// replace replaces the nth match of src in s, or all (0); groups: "\1" is one.
func (in *interp) replace(src, with, s string, nth int, groups bool) (string, int, error) {
	re, err := in.compile(src)
	if err != nil {
		return "", 0, err
	}
	text := []byte(s)
	var out strings.Builder
	count, done, copied, ended := 0, 0, 0, -1
	for at := 0; at <= len(text); {
		loc, err := re.Find(text, at, 0)
		if err != nil {
			return "", 0, err
		}
		if loc == nil {
			break
		}
		start, end := loc[0], loc[1]
		if start != end || start != ended {
			if count++; nth == 0 || count == nth {
				out.WriteString(s[copied:start])
				expand(&out, with, s, loc, groups)
				copied = end
				done++
				if err := in.limit(out.Len()); err != nil {
					return "", 0, err
				}
			}
		}
		if nth > 0 && done > 0 {
			break
		}
		ended = end
		if at = end; start == end {
			_, n := utf8.DecodeRune(text[end:])
			at += max(n, 1)
		}
		if err := in.step(); err != nil {
			return "", 0, err
		}
	}
	if done == 0 {
		return s, 0, nil
	}
	out.WriteString(s[copied:])
	return out.String(), done, nil
}

// expand writes a replacement: "&" is what matched, "\\&" the character.
func expand(out *strings.Builder, with, s string, loc []int, groups bool) {
	for i := 0; i < len(with); i++ {
		c := with[i]
		switch {
		case c == '&':
			out.WriteString(s[loc[0]:loc[1]])
			continue
		case c == '\\' && !groups:
			n := 0 // of the backslashes in front of &, each two are one
			for i+n < len(with) && with[i+n] == '\\' {
				n++
			}
			if i+n >= len(with) || with[i+n] != '&' {
				out.WriteString(with[i : i+n])
				i += n - 1
				continue
			}
			out.WriteString(with[i : i+n/2])
			if i += n - 1; n%2 == 1 {
				out.WriteByte('&')
				i++
			}
			continue
		case c == '\\' && i+1 < len(with):
			d := with[i+1]
			switch {
			case d == '&':
				out.WriteByte('&')
				i++
				continue
			case d == '\\' && groups:
				out.WriteByte('\\')
				i++
				continue
			case groups && value.IsDigit(d):
				if g := 2 * int(d-'0'); g+1 < len(loc) && loc[g] >= 0 {
					out.WriteString(s[loc[g]:loc[g+1]])
				}
				i++
				continue
			case groups:
				out.WriteByte(d)
				i++
				continue
			}
		}
		out.WriteByte(c)
	}
}
