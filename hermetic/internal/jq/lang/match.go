package lang

import (
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
	"egressd/hermetic/internal/regex"
)

// pattern is an expression with its flags: i, x, p and s are in re.
type pattern struct {
	re       *regex.Regexp
	names    []string
	all      bool // g
	nonEmpty bool // n
}

// pattern reads the arguments of match and its like: an expression, or an array
// of one and its flags.
func (m *Machine) pattern(v any, args []any) (*pattern, error) {
	re, flags := args[0], args[1]
	if list, ok := re.([]any); ok && len(list) > 0 {
		re = list[0]
		if len(list) > 1 {
			flags, _ = addFlags(list[1], flags)
		}
	}
	if err := matchable(v, []any{re, flags}); err != nil {
		return nil, err
	}
	expr, ok := re.(string)
	if !ok {
		return nil, Failf("%s cannot be matched, as it is not a string", described(re))
	}
	letters, _ := flags.(string)
	if p := m.patterns[letters+"/"+expr]; p != nil {
		return p, nil
	}
	p := &pattern{}
	o := regex.Options{Syntax: regex.Perl, Steps: m.Budget.Steps}
	prefix := ""
	for _, c := range letters {
		switch c {
		case 'g':
			p.all = true
		case 'n':
			p.nonEmpty = true
		case 'i':
			o.Fold = true
		case 'x', 'p':
			prefix += map[rune]string{'x': "(?x)", 'p': "(?s)"}[c]
		case 's': // ^ and $ are the text's begin and end: they are so without
		case 'l':
			return nil, Failf("the flag l, the longest match, is not supported here")
		default:
			return nil, Failf("%s is not a valid modifier string", letters)
		}
	}
	r, err := regex.Compile(prefix+expr, o)
	if err != nil {
		return nil, Failf("%s (at offset 0) is not a valid regex: %s", expr, err)
	}
	p.re, p.names = r, r.Names()
	if len(m.patterns) > 64 || m.patterns == nil {
		m.patterns = map[string]*pattern{}
	}
	m.patterns[letters+"/"+expr] = p
	return p, nil
}

func addFlags(a, b any) (any, bool) {
	x, ok1 := a.(string)
	y, ok2 := b.(string)
	if ok1 && ok2 {
		return x + y, true
	}
	if ok2 {
		return b, true
	}
	return a, true
}

// match is all matches of an expression in a text.
func (m *Machine) match(v any, args []any) ([]any, error) {
	p, err := m.pattern(v, args)
	if err != nil {
		return nil, err
	}
	text := []byte(v.(string))
	var all []any
	seen, offset := 0, 0 // offset: the characters before seen
	runes := func(at int) float64 {
		if at >= seen {
			offset += utf8.RuneCount(text[seen:at])
			seen = at
			return float64(offset)
		}
		return float64(offset - utf8.RuneCount(text[at:seen]))
	}
	for at := 0; at <= len(text); {
		loc, err := p.re.Find(text, at, 0)
		if err != nil {
			return nil, Failf("%s", err)
		}
		if loc == nil {
			break
		}
		if at = loc[1]; loc[0] == loc[1] {
			_, n := utf8.DecodeRune(text[at:])
			at += max(n, 1)
		}
		if loc[0] < loc[1] || !p.nonEmpty {
			all = append(all, p.found(text, loc, runes))
		}
		if err := m.step(); err != nil {
			return nil, err
		}
		if !p.all && len(all) > 0 {
			break
		}
	}
	return all, nil
}

func (p *pattern) found(text []byte, loc []int, runes func(int) float64) any {
	piece := func(from, to int) *value.Object {
		o := value.NewObject(4)
		if from < 0 {
			o.Put("offset", float64(-1))
			o.Put("length", float64(0))
			o.Put("string", nil)
			return o
		}
		start := runes(from)
		o.Put("offset", start)
		o.Put("length", runes(to)-start)
		o.Put("string", string(text[from:to]))
		return o
	}
	whole := piece(loc[0], loc[1])
	groups := []any{}
	for i, name := range p.names {
		from, to := -1, -1
		if 2*i+3 < len(loc) {
			from, to = loc[2*i+2], loc[2*i+3]
		}
		o := piece(from, to)
		o.Put("name", nil)
		if name != "" {
			o.Put("name", name)
		}
		groups = append(groups, o)
	}
	whole.Put("captures", groups)
	return whole
}

// matches is match/2.
func matches(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	given := make([]any, len(args))
	return m.cartesian(args, given, s, in, func() error {
		all, err := m.match(in.V, given)
		if err != nil {
			return err
		}
		for _, v := range all {
			if err := out(in.Computed(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// splits is split/2 with a part at a time.
func splits(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	given := make([]any, len(args))
	return m.cartesian(args, given, s, in, func() error {
		list, err := splitRegex(m, in.V, given)
		if err != nil {
			return err
		}
		for _, v := range list.([]any) {
			if err := out(in.Computed(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// splitRegex is split/2: the parts between all matches.
func splitRegex(m *Machine, v any, args []any) (any, error) {
	all, err := m.match(v, []any{args[0], plusG(args[1])})
	if err != nil {
		return nil, err
	}
	text := []rune(v.(string))
	parts, at := []any{}, 0
	for _, x := range all {
		offset, _ := indexValue(x, "offset")
		length, _ := indexValue(x, "length")
		from := int(offset.(float64))
		parts = append(parts, string(text[min(at, from):from]))
		at = from + int(length.(float64))
	}
	return append(parts, string(text[at:])), nil
}

func plusG(flags any) any {
	s, ok := flags.(string)
	if flags != nil && !ok {
		return flags
	}
	return s + "g"
}

// tested is test/2.
func tested(m *Machine, v any, args []any) (any, error) {
	p, err := m.pattern(v, args)
	if err != nil {
		return nil, err
	}
	if p.nonEmpty {
		all, err := m.match(v, args)
		return len(all) > 0, err
	}
	ok, err := p.re.Match([]byte(v.(string)))
	if err != nil {
		return nil, Failf("%s", err)
	}
	return ok, nil
}
