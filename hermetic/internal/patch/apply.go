package patch

import (
	"bytes"
	"slices"

	"egressd/hermetic/internal/diff"
)

// reverse swaps old and new.
func (h *patchHunk) reverse() {
	h.old, h.oldLen, h.new, h.newLen = h.new, h.newLen, h.old, h.oldLen
	for i := range h.lines {
		switch l := &h.lines[i]; l.op {
		case '-':
			l.op = '+'
		case '+':
			l.op = '-'
		}
	}
	// Removed lines come before added ones, as in a patch that was made so.
	for i := 0; i < len(h.lines); {
		j := i
		for j < len(h.lines) && h.lines[j].op != ' ' {
			j++
		}
		slices.SortStableFunc(h.lines[i:j], func(a, b patchLine) int { return int(b.op) - int(a.op) })
		i = j + 1
	}
}

// before are the lines that the hunk expects.
func (h *patchHunk) before() (all [][]byte) {
	for _, l := range h.lines {
		if l.op != '+' {
			all = append(all, l.text)
		}
	}
	return all
}

// around counts the common lines at the beginning and the end.
func (h *patchHunk) around() (prefix, suffix int) {
	for prefix < len(h.lines) && h.lines[prefix].op == ' ' {
		prefix++
	}
	for suffix < len(h.lines)-prefix && h.lines[len(h.lines)-1-suffix].op == ' ' {
		suffix++
	}
	return prefix, suffix
}

// target is a file while hunks are applied to it. Line numbers begin at 1.
type target struct {
	in     [][]byte
	out    [][]byte
	done   int // lines of in that are settled
	offset int // of the last hunk that was found
	moved  int // lines that out has more than in
	likeW  bool
	steps  func(n int64) error
}

// find reports the line where the hunk begins, 0 for none, with that many lines
// of context left out.
func (t *target) find(h *patchHunk, fuzz int) int {
	want := h.before()
	first := h.first() + t.offset
	if len(want) == 0 {
		return first
	}
	prefix, suffix := h.around()
	context := max(prefix, suffix)
	lead, tail := fuzz+prefix-context, fuzz+suffix-context
	up := len(t.in) - (len(want) - tail) + 1 - first
	down := min(first-(t.done+1), first-1)
	at := func(off, lead, tail int) bool { return t.match(want, first+off, lead, tail) }
	found := func(off int) int {
		t.offset += off
		return first + off
	}
	if lead < 0 && h.first() <= 1 {
		if tail < 0 && len(want) != len(t.in) {
			return 0
		}
		off := 1 - first
		if t.done <= prefix && off <= up && at(off, 0, max(tail, 0)) {
			return found(off)
		}
		return 0
	}
	lead = max(lead, 0)
	if tail < 0 {
		off := first - (len(t.in) - len(want) + 1)
		if off <= down && at(-off, lead, 0) {
			return found(-off)
		}
		return 0
	}
	// A line that is far beyond the file is looked for from its end.
	for off := max(0, first-len(t.in)-1); off <= max(up, down); off++ {
		switch {
		case off <= up && at(off, lead, tail):
			return found(off)
		case off > 0 && off <= down && at(-off, lead, tail):
			return found(-off)
		}
		if off%1024 == 0 && t.steps(1024) != nil {
			return 0
		}
	}
	return 0
}

// first is the line that the hunk names; an empty range names the one before.
func (h *patchHunk) first() int {
	if h.oldLen == 0 {
		return h.old + 1
	}
	return h.old
}

func (t *target) match(want [][]byte, at, lead, tail int) bool {
	for i := lead; i < len(want)-tail; i++ {
		line := at + i - 1
		if line < 0 || line >= len(t.in) || !t.equal(want[i], t.in[line]) {
			return false
		}
	}
	return true
}

func (t *target) equal(a, b []byte) bool {
	if !t.likeW {
		return bytes.Equal(a, b)
	}
	l := diff.Likeness{AnySpace: true}
	return bytes.Equal(l.Key(a, nil), l.Key(b, nil))
}

// apply puts the hunk in at line where. Common lines are the file's own: with
// fuzz they need not be the patch's.
func (t *target) apply(h *patchHunk, where int) {
	t.add(t.in[t.done : where-1]...)
	t.done = where - 1
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			if t.done < len(t.in) {
				t.add(t.in[t.done])
			}
			t.done++
		case '-':
			t.done++
			t.moved--
		case '+':
			t.add(l.text)
			t.moved++
		}
	}
	t.done = min(t.done, len(t.in))
}

// finish is the whole file.
func (t *target) finish() []byte {
	t.add(t.in[t.done:]...)
	return bytes.Join(t.out, nil)
}

// add writes lines; one that had no newline gets one when it is not the last.
func (t *target) add(lines ...[]byte) {
	for _, l := range lines {
		if n := len(t.out); n > 0 && !diff.Complete(t.out[n-1]) {
			t.out[n-1] = append(t.out[n-1][:len(t.out[n-1]):len(t.out[n-1])], '\n')
		}
		t.out = append(t.out, l)
	}
}
