package expand

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// transform is ${x@Q} and its relatives.
func transform(sh *state.Shell, p *syntax.ParamExp, f *found) {
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
		f.each(quote.Single)
	case "U":
		f.each(strings.ToUpper)
	case "L":
		f.each(strings.ToLower)
	case "u":
		f.each(func(s string) string {
			if s == "" {
				return s
			}
			r, size := chars.First(s)
			if r == utf8.RuneError {
				return s
			}
			return string(unicode.ToUpper(r)) + s[size:]
		})
	case "E":
		f.each(quote.DecodeANSI)
	case "P":
		f.each(func(s string) string { return Prompt(sh, s) })
	case "a":
		flags := ""
		if f.v != nil {
			flags = strings.Trim(f.v.Flags(), "-")
		}
		if f.list && f.v != nil {
			f.each(func(string) string { return flags })
			return
		}
		f.vals = []string{flags}
	case "A":
		assignable(sh, f)
	case "K", "k":
		pairsOf(sh, f, op == "k")
	default:
		badSubst(sh, p)
	}
}

// assignable is ${x@A}: a command that recreates the variable.
func assignable(sh *state.Shell, f *found) {
	if f.name == "" {
		if f.list {
			quoted := make([]string, len(f.vals))
			for i, v := range f.vals {
				quoted[i] = quote.Single(v)
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
		f.vals, f.list = []string{vars.Declaration(f.name, f.v)}, false
		return
	}
	flags := f.v.Flags()
	s := f.name + "=" + quote.Single(f.first())
	if flags != "-" {
		s = "declare -" + flags + " " + s
	}
	f.vals = []string{s}
}

// pairsOf is ${x[@]@K} and ${x[@]@k}.
func pairsOf(sh *state.Shell, f *found, separate bool) {
	if !f.array || !f.list || f.v == nil {
		f.each(quote.Single)
		return
	}
	keys, vals := f.v.Keys(), f.v.Values()
	var out []string
	for i := range keys {
		if separate {
			out = append(out, keys[i], vals[i])
			continue
		}
		k := keys[i]
		if f.v.Kind == vars.Assoc {
			k = quote.Key(k)
		}
		out = append(out, k+" "+quote.Double(vals[i]))
	}
	if separate {
		f.vals = out
		return
	}
	sep := " "
	if f.v.Kind == vars.Assoc && len(out) > 0 {
		f.vals, f.list = []string{strings.Join(out, sep) + " "}, false
		return
	}
	f.vals, f.list = []string{strings.Join(out, sep)}, false
}
