package pattern

import "math/bits"

// ends is a set of positions in a text, ascending.
type ends []int

func (e ends) has(at int) bool { return len(e) > 0 && e.last() == at }

func (e ends) first() int {
	if len(e) == 0 {
		return -1
	}
	return e[0]
}

func (e ends) last() int {
	if len(e) == 0 {
		return -1
	}
	return e[len(e)-1]
}

func union(a, b ends) ends {
	if len(a) == 0 {
		return b
	}
	out := make(ends, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

// marks is a set of positions in a text, as bits.
type marks []uint64

// add adds a position and reports whether it is new.
func (s marks) add(at int) bool {
	bit := uint64(1) << (at & 63)
	was := s[at>>6]&bit != 0
	s[at>>6] |= bit
	return !was
}

// list lists the positions, ascending.
func (s marks) list() ends {
	var out ends
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			out = append(out, i<<6+bits.TrailingZeros64(word))
		}
	}
	return out
}

// matcher follows all possible matches of a pattern at once.
type matcher struct {
	s    string
	fold bool
	step func(n int)
}

func (m *matcher) from(at int) ends { return ends{at} }

// run is the positions where nodes can end if they begin at any of starts.
func (m *matcher) run(nodes []node, at ends) ends {
	for i := range nodes {
		if len(at) == 0 {
			return nil
		}
		m.step(len(at))
		at = m.node(&nodes[i], at)
	}
	return at
}

func (m *matcher) node(n *node, at ends) ends {
	switch n.kind {
	case star:
		return m.all(at[0])
	case group:
		return m.group(n, at)
	}
	out := make(ends, 0, len(at))
	for _, p := range at {
		if p < len(m.s) {
			if size := step(*n, m.s[p:], m.fold); size > 0 {
				out = append(out, p+size)
			}
		}
	}
	return out
}

// all lists every position from at to the end.
func (m *matcher) all(at int) ends {
	m.step((len(m.s)-at)/4 + 1)
	out := make(ends, 0, len(m.s)-at+1)
	for at < len(m.s) {
		out = append(out, at)
		_, size := decode(m.s[at:])
		at += size
	}
	return append(out, len(m.s))
}

func (m *matcher) group(n *node, at ends) ends {
	switch n.r {
	case '@':
		return m.either(n, at)
	case '?':
		return union(at, m.either(n, at))
	case '!':
		var out ends
		for _, p := range at {
			taken := m.either(n, ends{p})
			var rest ends
			for _, q := range m.all(p) {
				for len(taken) > 0 && taken[0] < q {
					taken = taken[1:]
				}
				if len(taken) == 0 || taken[0] != q {
					rest = append(rest, q)
				}
			}
			out = union(out, rest)
		}
		return out
	}
	reached := m.repeat(n, at)
	if n.r == '*' {
		return union(at, reached)
	}
	return reached
}

// repeat is the positions where one or more repetitions of a group can end. It
// continues from each position once.
func (m *matcher) repeat(n *node, at ends) ends {
	m.step(len(m.s)/64 + 1)
	seen := make(marks, len(m.s)/64+1)
	for len(at) > 0 {
		var fresh ends
		for _, q := range m.either(n, at) {
			if seen.add(q) {
				fresh = append(fresh, q)
			}
		}
		at = fresh
	}
	return seen.list()
}

func (m *matcher) either(n *node, at ends) ends {
	var out ends
	for _, alt := range n.alts {
		out = union(out, m.run(alt, at))
	}
	return out
}
