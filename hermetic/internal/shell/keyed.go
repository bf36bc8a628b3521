package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/scan"
)

// keyedWord takes "[key]+=value" apart, which the parser knows as a word alone.
func (sh *shell) keyedWord(w *syntax.Word) (val *syntax.Word, key string, appends, ok bool) {
	parts := w.Parts
	if lit, isLit := firstLit(w); isLit && lit == scan.Appended {
		parts = parts[1:]
	}
	for i, p := range parts {
		lit, isLit := p.(*syntax.Lit)
		if !isLit || i == 0 && !strings.HasPrefix(lit.Value, "[") {
			if i == 0 {
				break
			}
			continue
		}
		before, rest, found := strings.Cut(lit.Value, "]+=")
		if !found {
			continue
		}
		in := append(append([]syntax.WordPart{}, parts[:i]...), &syntax.Lit{Value: before})
		first := *in[0].(*syntax.Lit)
		first.Value = first.Value[1:]
		in[0] = &first
		val = &syntax.Word{Parts: append([]syntax.WordPart{&syntax.Lit{Value: rest}}, parts[i+1:]...)}
		return val, sh.str(&syntax.Word{Parts: in}), true, true
	}
	return nil, "", false, false
}
