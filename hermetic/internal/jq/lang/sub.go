package lang

import (
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// substitution is one run of sub: what is matched, and by what it is replaced.
type substitution struct {
	text    []rune
	matches []any
	with    *gojq.Query
	scope   *Scope
	in      Item
}

func sub(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	return m.values(args[0], s, in, func(re any) error {
		return m.values(args[2], s, in, func(flags any) error {
			matches, err := m.match(in.V, []any{re, flags})
			if err != nil {
				return err
			}
			text, _ := in.V.(string)
			t := &substitution{[]rune(text), matches, args[1], s, in}
			if m.atMostOne(args[1], s, 0) || isText(args[1]) {
				return m.substitute(t, out)
			}
			return m.substituteEach(t, 0, 0, "", out)
		})
	})
}

// isText reports whether q is a string whose parts have one output each, as
// far as can be seen.
func isText(q *gojq.Query) bool {
	if q.Term == nil || q.Term.Type != gojq.TermTypeString || len(q.Term.SuffixList) > 0 {
		return false
	}
	for _, part := range q.Term.Str.Queries {
		inner := part.Term.Query
		if inner != nil && (inner.Term == nil || inner.Term.Type != gojq.TermTypeIndex || inner.Term.Index.Name == "" || len(inner.Term.SuffixList) > 0) {
			return false
		}
	}
	return true
}

func (t *substitution) bounds(i int) (from, to int, groups any) {
	offset, _ := indexValue(t.matches[i], "offset")
	length, _ := indexValue(t.matches[i], "length")
	f, _ := value.Number(offset)
	n, _ := value.Number(length)
	groups, _ = captured(nil, t.matches[i], nil)
	return int(f), int(f) + int(n), groups
}

// substitute replaces all matches in turn.
func (m *Machine) substitute(t *substitution, out Emit) error {
	var b strings.Builder
	at := 0
	for i := range t.matches {
		from, to, groups := t.bounds(i)
		x, ok, err := m.one(t.with, t.scope, Item{V: groups})
		if !ok || err != nil {
			return err
		}
		s, ok := x.V.(string)
		if !ok {
			return Failf("%s and %s cannot be added", described(string(t.text[at:from])), described(x.V))
		}
		if int64(b.Len()+len(s)) > m.Budget.Limits.String {
			return Failf("String too long")
		}
		b.WriteString(string(t.text[at:from]) + s)
		at = to
	}
	b.WriteString(string(t.text[at:]))
	return out(t.in.Computed(b.String()))
}

// substituteEach does so for every output of the replacement.
func (m *Machine) substituteEach(t *substitution, i, at int, done string, out Emit) error {
	if i == len(t.matches) {
		return out(t.in.Computed(done + string(t.text[at:])))
	}
	from, to, groups := t.bounds(i)
	return m.values(t.with, t.scope, Item{V: groups}, func(v any) error {
		s, ok := v.(string)
		if !ok {
			return Failf("%s and %s cannot be added", described(string(t.text[at:from])), described(v))
		}
		return m.substituteEach(t, i+1, to, done+string(t.text[at:from])+s, out)
	})
}
