package sort

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"io"
	"slices"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// sorter is what sort's options ask for.
type sorter struct {
	keys           []sortKey
	global         sortKey
	tab            int // -1: fields are parted by blanks
	stable, unique bool
	check          byte // 'c', 'C' or 0
	merge          bool
	out            string
	outGiven       bool
	end            byte
	seed           []byte
}

// sortLine is a line with the place of its first key.
type sortLine struct {
	text     []byte
	from, to int
}

func sortLines(w *gnu.Work) {
	w.Usage = 2
	s := sorter{tab: -1, end: '\n', global: sortKey{sword: -1, eword: -1}}
	operands, ok := s.options(w)
	if !ok {
		return
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	if s.check != 0 {
		if len(operands) > 1 {
			w.Die(2, "extra operand %s not allowed with -%c", gnu.QuoteShell(operands[1]), s.check)
			return
		}
		s.checkOrder(w, operands[0])
		return
	}
	lines, ok := s.read(w, operands)
	if !ok {
		return
	}
	if s.outGiven && s.out != "-" {
		f, err := w.Create(s.out, false)
		if err != nil {
			w.Die(2, "open failed: %s: %s", gnu.QuoteName(s.out), command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	s.write(w, lines)
}

// read takes in all files, each a run of its own when merging.
func (s *sorter) read(w *gnu.Work, operands []string) ([]sortLine, bool) {
	var runs [][]sortLine
	held := int64(0)
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Die(2, "cannot read: %s: %s", gnu.QuoteName(name), command.Reason(err))
			return nil, false
		}
		all, err := w.All(r)
		_ = r.Close()
		if held += int64(len(all)); err == nil && held > w.Most() {
			err = gnu.ErrMemory
		}
		if err != nil {
			if w.Ctx.Err() == nil {
				w.Die(2, "read failed: %s: %s", gnu.QuoteName(name), command.Reason(err))
			}
			return nil, false
		}
		lines := s.lines(all)
		if held += int64(len(lines)) * 48; held > 2*w.Most() {
			w.Die(2, "memory exhausted")
			return nil, false
		}
		if s.merge || len(runs) == 0 {
			runs = append(runs, lines)
		} else {
			runs[0] = append(runs[0], lines...)
		}
	}
	if s.merge {
		return s.mergeRuns(runs), true
	}
	stop := false
	n := 0
	slices.SortStableFunc(runs[0], func(a, b sortLine) int {
		if n++; n%4096 == 0 && w.Ctx.Err() != nil {
			stop = true
		}
		if stop {
			return 0
		}
		return s.compare(a, b)
	})
	return runs[0], !stop
}

func (s *sorter) lines(all []byte) []sortLine {
	out := make([]sortLine, 0, bytes.Count(all, []byte{s.end})+1)
	for len(all) > 0 {
		text := all
		if at := bytes.IndexByte(all, s.end); at >= 0 {
			text, all = all[:at], all[at+1:]
		} else {
			all = nil
		}
		out = append(out, s.line(text))
	}
	return out
}

func (s *sorter) line(text []byte) sortLine {
	l := sortLine{text: text}
	if len(s.keys) > 0 {
		l.from, l.to = s.keys[0].bounds(text, s.tab)
	}
	return l
}

// compare orders two lines: by the keys, then by all their bytes.
func (s *sorter) compare(a, b sortLine) int {
	if len(s.keys) > 0 {
		if d := s.compareKeys(a, b); d != 0 || s.unique || s.stable {
			return d
		}
	}
	d := bytes.Compare(a.text, b.text)
	if s.global.reverse {
		return -d
	}
	return d
}

func (s *sorter) compareKeys(a, b sortLine) int {
	for i := range s.keys {
		k := &s.keys[i]
		if i > 0 {
			a.from, a.to = k.bounds(a.text, s.tab)
			b.from, b.to = k.bounds(b.text, s.tab)
		}
		if d := k.compare(a.text[a.from:a.to], b.text[b.from:b.to], s.seed); d != 0 {
			if k.reverse {
				return -d
			}
			return d
		}
	}
	return 0
}

func (s *sorter) write(w *gnu.Work, lines []sortLine) {
	for i, l := range lines {
		if s.unique && i > 0 && s.compare(lines[i-1], l) == 0 {
			lines[i] = lines[i-1] // the first of the equal ones stays the measure
			continue
		}
		w.Out.Write(l.text)
		if err := w.Out.WriteByte(s.end); err != nil {
			return
		}
	}
}

// checkOrder is -c and -C.
func (s *sorter) checkOrder(w *gnu.Work, name string) {
	r, err := w.Open(name)
	if err != nil {
		w.Die(2, "cannot read: %s: %s", gnu.QuoteName(name), command.Reason(err))
		return
	}
	defer r.Close()
	lines := w.Lines(r, s.end)
	var prev sortLine
	for n := 1; ; n++ {
		text, err := lines.Text()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			w.Die(2, "read failed: %s: %s", gnu.QuoteName(name), command.Reason(err))
			return
		}
		l := s.line(bytes.Clone(text))
		if n > 1 {
			if d := s.compare(prev, l); d > 0 || d == 0 && s.unique {
				if s.check == 'c' {
					w.Complain("%s:%d: disorder: %s", name, n, text)
				}
				w.Status = 1
				return
			}
		}
		prev = l
	}
}

// mergeRuns merges what is taken to be sorted; of equal lines the earlier
// file's comes first.
func (s *sorter) mergeRuns(runs [][]sortLine) []sortLine {
	h := &sortHeap{s: s}
	var out []sortLine
	for i, r := range runs {
		if len(r) > 0 {
			h.runs = append(h.runs, sortRun{i, r})
		}
	}
	heap.Init(h)
	for len(h.runs) > 0 {
		r := &h.runs[0]
		out = append(out, r.lines[0])
		if r.lines = r.lines[1:]; len(r.lines) == 0 {
			heap.Pop(h)
		} else {
			heap.Fix(h, 0)
		}
	}
	return out
}

type sortRun struct {
	n     int
	lines []sortLine
}

type sortHeap struct {
	s    *sorter
	runs []sortRun
}

func (h *sortHeap) Len() int { return len(h.runs) }
func (h *sortHeap) Less(i, j int) bool {
	a, b := h.runs[i], h.runs[j]
	return cmp.Or(h.s.compare(a.lines[0], b.lines[0]), a.n-b.n) < 0
}
func (h *sortHeap) Swap(i, j int) { h.runs[i], h.runs[j] = h.runs[j], h.runs[i] }
func (h *sortHeap) Push(x any)    { h.runs = append(h.runs, x.(sortRun)) }
func (h *sortHeap) Pop() any {
	last := h.runs[len(h.runs)-1]
	h.runs = h.runs[:len(h.runs)-1]
	return last
}
