package regex

import "slices"

// Bounds of finding out what each group matched by POSIX's rules: beyond them
// it is what the search found. The text in bytes, and places remembered.
const (
	maxTrace  = 4096
	maxPlaces = 1 << 20
)

// posixGroups says what the groups of a match are by POSIX: each part of the
// expression, from the left, takes the longest text that lets the rest match.
func (re *Regexp) posixGroups(text []byte, loc []int, f Flags) ([]int, error) {
	t := tracer{
		m: matcher{re: re, prog: re.prog, text: text, flags: f}, end: loc[1],
		memo: map[place][]int{}, left: maxPlaces,
	}
	if loc[1]-loc[0] > maxTrace || !slices.Contains(t.ends(re.root, loc[0]), loc[1]) || t.left <= 0 {
		return t.m.search(loc[0])
	}
	t.loc = whole(loc[0], loc[1], re.groups)
	t.path(re.root, loc[0], loc[1])
	return t.loc, re.step(maxPlaces - int64(t.left))
}

// place is a part of the expression at a place of the text: of a sequence from
// its k-th, of a repetition after k turns.
type place struct {
	n    *node
	k, i int
}

type tracer struct {
	m    matcher
	end  int
	memo map[place][]int
	left int
	loc  []int
}

// ends are the places where a match of n from i can end, ascending.
func (t *tracer) ends(n *node, i int) []int {
	switch n.op {
	case opEmpty:
		return []int{i}
	case opRune, opSet:
		pos := i
		in := inst{op: iRune, r: n.r, set: n.set}
		if n.op == opSet {
			in.op = iSet
		}
		if t.m.take(&in, &pos) && pos <= t.end {
			return []int{pos}
		}
	case opAssert:
		if t.m.at(assertion(n.n), i) {
			return []int{i}
		}
	case opGroup:
		return t.ends(n.subs[0], i)
	case opAlt:
		return t.remember(place{n, 0, i}, func() (all []int) {
			for _, s := range n.subs {
				all = append(all, t.ends(s, i)...)
			}
			return all
		})
	case opCat:
		return t.rest(n, 0, i)
	case opRepeat:
		return t.turns(n, 0, i)
	}
	return nil
}

// rest are the ends of a sequence from its k-th part on.
func (t *tracer) rest(n *node, k, i int) []int {
	if k == len(n.subs) {
		return []int{i}
	}
	return t.remember(place{n, k, i}, func() (all []int) {
		for _, m := range t.ends(n.subs[k], i) {
			all = append(all, t.rest(n, k+1, m)...)
		}
		return all
	})
}

// turns are the ends of a repetition after k turns.
func (t *tracer) turns(n *node, k, i int) []int {
	return t.remember(place{n, k, i}, func() (all []int) {
		if k >= n.min {
			all = append(all, i)
		}
		if n.max >= 0 && k >= n.max {
			return all
		}
		for _, m := range t.ends(n.subs[0], i) {
			if m > i || k < n.min {
				all = append(all, t.turns(n, n.after(k), m)...)
			}
		}
		return all
	})
}

// after is the count of turns after k: beyond the least it matters only where
// there is a most.
func (n *node) after(k int) int {
	if n.max < 0 {
		return min(k+1, n.min)
	}
	return k + 1
}

func (t *tracer) remember(p place, find func() []int) []int {
	if got, ok := t.memo[p]; ok {
		return got
	}
	if t.left <= 0 {
		return nil
	}
	t.left--
	all := find()
	t.left -= len(all)
	slices.Sort(all)
	all = slices.Compact(all)
	t.memo[p] = all
	return all
}

func reaches(ends []int, j int) bool {
	_, ok := slices.BinarySearch(ends, j)
	return ok
}

// path notes the groups of n, which matches from i to j.
func (t *tracer) path(n *node, i, j int) {
	switch n.op {
	case opGroup:
		t.loc[2*n.n], t.loc[2*n.n+1] = i, j
		t.path(n.subs[0], i, j)
	case opAlt:
		for _, s := range n.subs {
			if reaches(t.ends(s, i), j) {
				t.path(s, i, j)
				return
			}
		}
	case opCat:
		for k, s := range n.subs {
			ends := t.ends(s, i)
			for at := len(ends) - 1; at >= 0; at-- {
				if m := ends[at]; reaches(t.rest(n, k+1, m), j) {
					t.path(s, i, m)
					i = m
					break
				}
			}
		}
	case opRepeat:
		t.pathTurns(n, i, j)
	}
}

func (t *tracer) pathTurns(n *node, i, j int) {
	body := n.subs[0]
	for k, turn := 0, 0; n.max < 0 || turn < n.max; turn++ {
		if i == j && k >= n.min {
			if turn == 0 && reaches(t.ends(body, i), i) {
				t.path(body, i, i)
			}
			return
		}
		ends := t.ends(body, i)
		moved := false
		for at := len(ends) - 1; at >= 0 && !moved; at-- {
			m := ends[at]
			if (m > i || k < n.min) && reaches(t.turns(n, n.after(k), m), j) {
				t.path(body, i, m)
				i, k, moved = m, n.after(k), true
			}
		}
		if !moved {
			return
		}
	}
}
