package redirect

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
)

// hereDoc is the text of a here-document.
func hereDoc(sh *state.Shell, r *syntax.Redirect) string {
	if r.Hdoc == nil {
		return ""
	}
	if quotedWord(r.Word) {
		var b strings.Builder
		for _, p := range r.Hdoc.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
		if r.Op == syntax.DashHdoc {
			return stripTabs(b.String())
		}
		return b.String()
	}
	w := r.Hdoc
	if r.Op == syntax.DashHdoc {
		w = withoutTabs(w)
	}
	return expand.Document(sh, w)
}

// quotedWord reports whether a delimiter is quoted: then the document is not
// expanded.
func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.IndexByte(p.Value, '\\') >= 0 {
				return true
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		}
	}
	return false
}

// stripTabs removes the tabs at the beginning of lines, as <<- does.
func stripTabs(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimLeft(l, "\t")
	}
	return strings.Join(lines, "")
}

// withoutTabs is stripTabs on the text of a document, but not on the results of
// its expansions.
func withoutTabs(w *syntax.Word) *syntax.Word {
	c := &syntax.Word{}
	atStart := true
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			c.Parts = append(c.Parts, p)
			atStart = false
			continue
		}
		s := lit.Value
		if !atStart {
			first, rest, more := strings.Cut(s, "\n")
			if more {
				s = first + "\n" + stripTabs(rest)
			}
		} else {
			s = stripTabs(s)
		}
		atStart = strings.HasSuffix(s, "\n")
		c.Parts = append(c.Parts, &syntax.Lit{Value: s})
	}
	return c
}
