package expand

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
)

// expandBraces expands {a,b} and {1..9}.
func expandBraces(sh *state.Shell, w *syntax.Word) []*syntax.Word {
	c := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(c) {
		return []*syntax.Word{w}
	}
	return braceWord(sh, c)
}

// braceWord is the words of a word that was split at its braces.
func braceWord(sh *state.Shell, w *syntax.Word) []*syntax.Word {
	out := []*syntax.Word{{}}
	for _, p := range w.Parts {
		b, ok := p.(*syntax.BraceExp)
		if lit, isLit := p.(*syntax.Lit); isLit && lit.Value == "" && len(w.Parts) > 1 {
			continue
		}
		if !ok {
			for _, o := range out {
				o.Parts = append(o.Parts, p)
			}
			continue
		}
		var alts []*syntax.Word
		if b.Sequence {
			alts = sequence(sh, b)
		} else {
			for _, e := range b.Elems {
				alts = append(alts, braceWord(sh, e)...)
				sh.CheckGlobs(len(alts))
			}
		}
		next := make([]*syntax.Word, 0, len(out)*len(alts))
		sh.CheckGlobs(len(out) * len(alts))
		for _, o := range out {
			for _, a := range alts {
				parts := make([]syntax.WordPart, 0, len(o.Parts)+len(a.Parts))
				next = append(next, &syntax.Word{Parts: append(append(parts, o.Parts...), a.Parts...)})
			}
		}
		out = next
	}
	return out
}

// sequence expands {x..y..step}.
func sequence(sh *state.Shell, b *syntax.BraceExp) []*syntax.Word {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	step := int64(1)
	if len(b.Elems) > 2 {
		step = signed(b.Elems[2].Lit())
		if step < 0 {
			step = -step
		}
		if step <= 0 {
			step = 1
		}
	}
	x, errX := strconv.ParseInt(from, 10, 64)
	y, errY := strconv.ParseInt(to, 10, 64)
	width, letters := 0, false
	if errX != nil || errY != nil {
		x, y, letters = int64(from[0]), int64(to[0]), true
	} else if padded(from) || padded(to) {
		width = max(len(from), len(to))
	}
	count := (x - y) / step
	if y > x {
		count = (y - x) / step
	}
	if count < 0 {
		count = 1 << 40
	}
	sh.CheckGlobs(int(count) + 1)
	out := make([]*syntax.Word, 0, count+1)
	for i := int64(0); i <= count; i++ {
		n := x + i*step
		if y < x {
			n = x - i*step
		}
		text := ""
		switch {
		case letters:
			text = string([]byte{byte(n)})
		case n < 0:
			text = "-" + number.ZeroPad(strconv.FormatInt(-n, 10), width-1)
		default:
			text = number.ZeroPad(strconv.FormatInt(n, 10), width)
		}
		if letters && strings.Contains("\\`$\"'", text) {
			out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: text}}})
			continue
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
	}
	return out
}

// padded reports a number that is written with a leading zero.
func padded(s string) bool {
	s = strings.TrimLeft(s, "-+")
	return len(s) > 1 && s[0] == '0'
}

// signed reads a decimal number; 0 if s is not one.
func signed(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// braces expands the braces of a word. The caller must not change the results.
func braces(sh *state.Shell, w *syntax.Word) []*syntax.Word {
	if sh.Options.Flags&options.NoBrace != 0 {
		return []*syntax.Word{w}
	}
	has := false
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			has = true
		}
	}
	if !has {
		return []*syntax.Word{w}
	}
	return expandBraces(sh, w)
}
