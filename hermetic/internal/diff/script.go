package diff

import (
	"bytes"

	"egressd/hermetic/internal/gnu"
)

// change is one place where the sides differ: lines [x, x+del) of the first
// are lines [y, y+ins) of the second.
type change struct {
	x, del, y, ins int
	ignored        bool
}

// marks says which lines of a side are not in the other; index 0 is before the
// first line, the last index after the last.
type marks []bool

func (m marks) at(i int) bool { return m[i+1] }

func (m marks) set(i int, v bool) { m[i+1] = v }

// script compares a and b, whose lines are classified. near is how many lines
// of a common beginning and end take part.
func script(w *gnu.Work, a, b *Doc, near int, minimal bool) ([]change, error) {
	sides := [2]*Doc{a, b}
	changed := [2]marks{make(marks, len(a.Lines)+2), make(marks, len(b.Lines)+2)}
	start, end := ends(a, b, near)
	var counts [2]map[int]int
	for f, d := range sides {
		counts[f] = map[int]int{}
		for _, c := range d.class[start : len(d.class)-end] {
			counts[f][c]++
		}
	}
	var kept, index [2][]int
	for f, d := range sides {
		class := d.class[start : len(d.class)-end]
		for i, v := range judge(class, counts[1-f]) {
			if v == keep || minimal {
				kept[f], index[f] = append(kept[f], class[i]), append(index[f], start+i)
				continue
			}
			changed[f].set(start+i, true)
		}
	}
	s := newSearch(kept[0], kept[1], func(side, i int) { changed[side].set(index[side][i], true) })
	s.ctx, s.budget = w.Ctx, w.Budget
	if s.run(box{0, len(kept[0]), 0, len(kept[1]), minimal}); s.err != nil {
		return nil, s.err
	}
	// The common beginning and end are out of reach for the moves, too.
	x, y := changed[0][start:len(changed[0])-end], changed[1][start:len(changed[1])-end]
	shift(a.class[start:len(a.class)-end], x, y)
	shift(b.class[start:len(b.class)-end], y, x)
	return collect(changed[0], changed[1]), nil
}

// ends counts the lines at the beginning and the end that are the same.
func ends(a, b *Doc, near int) (start, end int) {
	n := min(len(a.Lines), len(b.Lines))
	for start < n && bytes.Equal(a.Lines[start], b.Lines[start]) {
		start++
	}
	start = max(start-near, 0)
	n -= start
	for end < n && bytes.Equal(a.Lines[len(a.Lines)-1-end], b.Lines[len(b.Lines)-1-end]) {
		end++
	}
	return start, max(end-near, 0)
}

// shift moves each run of changes as far down as it goes without changing the
// result, and back to where the other side has a change, too; runs that meet
// become one.
func shift(class []int, mine, other marks) {
	i, j, end := 0, 0, len(class)
	for {
		for i < end && !mine.at(i) {
			for other.at(j) {
				j++
			}
			j++
			i++
		}
		if i == end {
			return
		}
		s := slide{class: class, mine: mine, other: other, start: i}
		for mine.at(i) {
			i++
		}
		for other.at(j) {
			j++
		}
		s.i, s.j = i, j
		s.settle()
		i, j = s.i, s.j
	}
}

// slide is one run of changes, [start, i), while it is moved; j is the line of
// the other side that corresponds to i.
type slide struct {
	class       []int
	mine, other marks
	start, i, j int
}

func (s *slide) settle() {
	end := len(s.class)
	var match int // end of the run where it last met a change of the other side
	for {
		length := s.i - s.start
		for s.start > 0 && s.class[s.start-1] == s.class[s.i-1] {
			s.back()
			for s.mine.at(s.start - 1) {
				s.start--
			}
		}
		match = end
		if s.other.at(s.j - 1) {
			match = s.i
		}
		for s.i != end && s.class[s.start] == s.class[s.i] {
			s.mine.set(s.start, false)
			s.mine.set(s.i, true)
			s.start++
			s.i++
			for s.mine.at(s.i) {
				s.i++
			}
			s.j++
			for s.other.at(s.j) {
				s.j++
				match = s.i
			}
		}
		if length == s.i-s.start {
			break
		}
	}
	for match < s.i {
		s.back()
	}
}

// back moves the run up by one line.
func (s *slide) back() {
	s.start--
	s.i--
	s.mine.set(s.start, true)
	s.mine.set(s.i, false)
	s.j--
	for s.other.at(s.j) {
		s.j--
	}
}

func collect(a, b marks) (all []change) {
	na, nb := len(a)-2, len(b)-2
	for i, j := 0, 0; i < na || j < nb; i, j = i+1, j+1 {
		c := change{x: i, y: j}
		for i < na && a.at(i) {
			i++
		}
		for j < nb && b.at(j) {
			j++
		}
		if c.del, c.ins = i-c.x, j-c.y; c.del+c.ins > 0 {
			all = append(all, c)
		}
	}
	return all
}
