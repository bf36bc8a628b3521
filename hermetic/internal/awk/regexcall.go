package awk

import (
	"strings"
	"unicode/utf8"
)

// refill makes a hold what fill sets.
func (in *interp) refill(a *array, values []string, first int) error {
	for k := range a.m {
		in.size -= int64(len(k) + cellSize)
	}
	clear(a.m)
	for i, v := range values {
		c, err := in.at(a, itoa(first+i))
		if err != nil {
			return err
		}
		c.v = input(v)
	}
	return nil
}

// splitCall is split and patsplit.
func (in *interp) splitCall(e *builtinExpr) (value, error) {
	v, err := in.eval(e.args[0])
	if err != nil {
		return value{}, err
	}
	s := v.text(in.convfmt)
	a, err := in.arrayArg(e.args[1])
	if err != nil {
		return value{}, err
	}
	parts, seps, err := in.splitParts(e, s)
	if err != nil {
		return value{}, err
	}
	if len(e.args) > 3 {
		sa, err := in.arrayArg(e.args[3])
		if err != nil {
			return value{}, err
		}
		first := 1
		if len(seps) > len(parts) { // what is before the first
			first = 0
		}
		if err := in.refill(sa, seps, first); err != nil {
			return value{}, err
		}
	}
	return num(float64(len(parts))), in.refill(a, parts, 1)
}

func (in *interp) splitParts(e *builtinExpr, s string) (parts, seps []string, err error) {
	if e.name == "patsplit" {
		src := in.rec.fpat
		if len(e.args) > 2 {
			if src, err = in.regexSource(e.args[2]); err != nil {
				return nil, nil, err
			}
		}
		return in.splitContent(s, src)
	}
	if len(e.args) < 3 {
		return in.splitBy(s, in.rec.fs, in.rec.rs.paragraph)
	}
	if re, ok := e.args[2].(*regexExpr); ok {
		if re.src == "" {
			return in.splitBy(s, "", false)
		}
		return in.splitRegex(s, re.src)
	}
	fs, err := in.regexSource(e.args[2])
	if err != nil {
		return nil, nil, err
	}
	return in.splitBy(s, fs, false)
}

// matchCall is match(s, re [, array]).
func (in *interp) matchCall(e *builtinExpr) (value, error) {
	v, err := in.eval(e.args[0])
	if err != nil {
		return value{}, err
	}
	s := v.text(in.convfmt)
	src, err := in.regexSource(e.args[1])
	if err != nil {
		return value{}, err
	}
	re, err := in.compile(src)
	if err != nil {
		return value{}, err
	}
	loc, err := re.Find([]byte(s), 0, 0)
	if err != nil {
		return value{}, err
	}
	start, length := 0, -1
	if loc != nil {
		start, length = in.runes(s[:loc[0]])+1, in.runes(s[loc[0]:loc[1]])
	}
	if len(e.args) > 2 {
		a, err := in.arrayArg(e.args[2])
		if err != nil {
			return value{}, err
		}
		if err := in.matchArray(a, s, loc); err != nil {
			return value{}, err
		}
	}
	if err := in.setGlobal("RSTART", num(float64(start))); err != nil {
		return value{}, err
	}
	return num(float64(start)), in.setGlobal("RLENGTH", num(float64(length)))
}

func (in *interp) matchArray(a *array, s string, loc []int) error {
	if err := in.refill(a, nil, 0); err != nil {
		return err
	}
	for i := 0; 2*i < len(loc); i++ {
		if loc[2*i] < 0 {
			continue
		}
		text := s[loc[2*i]:loc[2*i+1]]
		a.set(itoa(i), input(text))
		a.set(itoa(i)+in.subsep+"start", num(float64(in.runes(s[:loc[2*i]])+1)))
		a.set(itoa(i)+in.subsep+"length", num(float64(in.runes(text))))
	}
	return nil
}

// subCall is sub and gsub.
func (in *interp) subCall(e *builtinExpr) (value, error) {
	src, err := in.regexSource(e.args[0])
	if err != nil {
		return value{}, err
	}
	re, err := in.eval(e.args[1])
	if err != nil {
		return value{}, err
	}
	var target expr = &fieldExpr{&numExpr{num(0)}}
	if len(e.args) > 2 {
		target = e.args[2]
	}
	v, err := in.eval(target)
	if err != nil {
		return value{}, err
	}
	nth := 1
	if e.name == "gsub" {
		nth = 0
	}
	out, n, err := in.replace(src, re.text(in.convfmt), v.text(in.convfmt), nth, false)
	if err != nil || n == 0 {
		return num(0), err
	}
	if !isTarget(target) {
		if g, ok := target.(*groupExpr); !ok || len(g.list) != 1 || !isTarget(g.list[0]) {
			return num(float64(n)), nil
		}
	}
	return num(float64(n)), in.assignTo(target, str(out))
}

// gensub is gensub(re, replacement, how [, target]).
func (in *interp) gensub(e *builtinExpr) (value, error) {
	src, err := in.regexSource(e.args[0])
	if err != nil {
		return value{}, err
	}
	with, err := in.eval(e.args[1])
	if err != nil {
		return value{}, err
	}
	how, err := in.eval(e.args[2])
	if err != nil {
		return value{}, err
	}
	target := input(in.rec.text())
	if len(e.args) > 3 {
		if target, err = in.eval(e.args[3]); err != nil {
			return value{}, err
		}
	}
	nth := max(int(how.number()), 1)
	if t := how.text(in.convfmt); t != "" && (t[0] == 'g' || t[0] == 'G') {
		nth = 0
	}
	out, _, err := in.replace(src, with.text(in.convfmt), target.text(in.convfmt), nth, true)
	return str(out), err
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
			case groups && isDigit(d):
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
