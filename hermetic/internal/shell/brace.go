package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expandBraces makes the words of {a,b} and {1..9}.
func (sh *shell) expandBraces(w *syntax.Word) []*syntax.Word {
	c := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	if !syntax.SplitBraces(c) {
		return []*syntax.Word{w}
	}
	return sh.braceWord(c)
}

func (sh *shell) braceWord(w *syntax.Word) []*syntax.Word {
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
			alts = sh.sequence(b)
		} else {
			for _, e := range b.Elems {
				alts = append(alts, sh.braceWord(e)...)
				sh.checkGlobs(len(alts))
			}
		}
		next := make([]*syntax.Word, 0, len(out)*len(alts))
		sh.checkGlobs(len(out) * len(alts))
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

// sequence is {x..y..step}.
func (sh *shell) sequence(b *syntax.BraceExp) []*syntax.Word {
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
	sh.checkGlobs(int(count) + 1)
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
			text = "-" + zeros(strconv.FormatInt(-n, 10), width-1)
		default:
			text = zeros(strconv.FormatInt(n, 10), width)
		}
		if letters && strings.Contains("\\`$\"'", text) {
			out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: text}}})
			continue
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
	}
	return out
}

func padded(s string) bool {
	s = strings.TrimLeft(s, "-+")
	return len(s) > 1 && s[0] == '0'
}

func zeros(s string, width int) string {
	if n := width - len(s); n > 0 {
		return strings.Repeat("0", n) + s
	}
	return s
}

// signed is a decimal number; 0 when it is none.
func signed(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
