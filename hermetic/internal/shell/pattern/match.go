package pattern

import (
	"strings"
	"unicode"
)

// Match reports whether p matches all of s.
func (p *Pattern) Match(s string) bool {
	if p.isLit {
		return s == p.lit
	}
	if !p.groups {
		return p.simple(s)
	}
	m := matcher{s: s, fold: p.fold, step: p.step}
	return m.run(p.nodes, m.from(0)).has(len(s))
}

// simple matches a pattern without groups. After a mismatch only the last star
// takes one more character.
func (p *Pattern) simple(s string) bool {
	at, n, starAt, starNode := 0, 0, -1, 0
	for turns := 1; at < len(s); turns++ {
		if turns&1023 == 0 {
			p.step(1024)
		}
		if n < len(p.nodes) && p.nodes[n].kind == star {
			starAt, starNode = at, n+1
			n++
			continue
		}
		if n < len(p.nodes) {
			if size := step(p.nodes[n], s[at:], p.fold); size > 0 {
				at, n = at+size, n+1
				continue
			}
		}
		if starAt < 0 {
			return false
		}
		_, size := decode(s[starAt:])
		starAt += size
		at, n = starAt, starNode
	}
	for n < len(p.nodes) && p.nodes[n].kind == star {
		n++
	}
	return n == len(p.nodes)
}

// step is how many bytes at the beginning of s a node matches; 0 if it does not
// match.
func step(n node, s string, fold bool) int {
	r, size := decode(s)
	switch n.kind {
	case anyChar:
		return size
	case set:
		if n.set.has(r) {
			return size
		}
	case char:
		if fold {
			r = unicode.ToLower(r)
		}
		if r == n.r {
			return size
		}
	}
	return 0
}

// Prefix is the length of the shortest or longest beginning of s that p
// matches; -1 if there is none.
func (p *Pattern) Prefix(s string, longest bool) int {
	if p.isLit {
		if strings.HasPrefix(s, p.lit) {
			return len(p.lit)
		}
		return -1
	}
	m := matcher{s: s, fold: p.fold, step: p.step}
	ends := m.run(p.nodes, m.from(0))
	if longest {
		return ends.last()
	}
	return ends.first()
}

// Suffix is the index of the shortest or longest end of s that p matches; -1 if
// there is none.
func (p *Pattern) Suffix(s string, longest bool) int {
	if p.isLit {
		if strings.HasSuffix(s, p.lit) {
			return len(s) - len(p.lit)
		}
		return -1
	}
	match := func(at int) bool {
		return (&Pattern{nodes: p.nodes, fold: p.fold, step: p.step, groups: p.groups}).Match(s[at:])
	}
	if longest {
		for at := 0; at < len(s); {
			if match(at) {
				return at
			}
			_, size := decode(s[at:])
			at += size
		}
		if match(len(s)) {
			return len(s)
		}
		return -1
	}
	starts := []int{}
	for at := 0; at < len(s); {
		starts = append(starts, at)
		_, size := decode(s[at:])
		at += size
	}
	if match(len(s)) {
		return len(s)
	}
	for i := len(starts) - 1; i >= 0; i-- {
		if match(starts[i]) {
			return starts[i]
		}
	}
	return -1
}

// Find is the leftmost longest match in s at or after from; ok is false if
// there is none.
func (p *Pattern) Find(s string, from int) (start, end int, ok bool) {
	if p.isLit {
		i := strings.Index(s[from:], p.lit)
		return from + i, from + i + len(p.lit), i >= 0
	}
	m := matcher{s: s, fold: p.fold, step: p.step}
	for at := from; at <= len(s); {
		if e := m.run(p.nodes, m.from(at)).last(); e >= 0 {
			return at, e, true
		}
		if at == len(s) {
			break
		}
		_, size := decode(s[at:])
		at += size
	}
	return 0, 0, false
}
