package regex

import (
	"slices"
	"unicode"
)

// Bounds of one match in memory: places that are still to be tried, and bits
// that remember which have failed.
const (
	maxJobs = 1 << 21
	maxBits = 1 << 28
	maxSubs = 200 // depth of look-around in look-around
)

// job is a place to go back to, or (pc < 0) a slot to set back.
type job struct {
	pc, slot int32
	pos      int
}

// matcher runs a program over a text, going back where it fails. Where the
// expression allows it, what failed once is not tried again, so that the time
// is that of text times program; else Steps ends it.
type matcher struct {
	re    *Regexp
	prog  *prog
	text  []byte
	flags Flags

	slots []int
	jobs  []job
	seen  []uint64
	base  int // the first place that seen covers
	steps int
	depth int
	best  []int
}

// search finds the leftmost match from at on.
func (m *matcher) search(at int) ([]int, error) {
	m.slots = make([]int, m.prog.slots)
	if err := m.remember(at); err != nil {
		return nil, err
	}
	for ; at <= len(m.text); at += m.width(at) {
		if f := m.prog.first; f != nil {
			for at < len(m.text) && !f[m.text[at]] {
				at++
			}
			if at == len(m.text) {
				break
			}
			if at > 0 && m.text[at]&0xc0 == 0x80 && !m.boundary(at) {
				continue
			}
		}
		for i := range m.slots {
			m.slots[i] = -1
		}
		ok, err := m.run(m.prog, at, -1)
		if err != nil {
			return nil, err
		}
		if ok {
			return m.result(), m.count()
		}
	}
	if err := m.count(); err != nil {
		return nil, err
	}
	return nil, errNone
}

// boundary reports whether a character begins at the continuation byte at.
func (m *matcher) boundary(at int) bool {
	if m.re.opts.Bytes {
		return true
	}
	for back := 1; back <= 3 && back <= at; back++ {
		if m.text[at-back]&0xc0 != 0x80 {
			_, n := decode(m.text[at-back:], false)
			return n <= back
		}
	}
	return true
}

func (m *matcher) width(at int) int {
	if at >= len(m.text) {
		return 1
	}
	_, n := decode(m.text[at:], m.re.opts.Bytes)
	return n
}

// remember makes room for the places that failed.
func (m *matcher) remember(at int) error {
	if !m.prog.plain || m.prog.splits == 0 {
		return nil
	}
	bits := m.prog.splits * (len(m.text) - at + 1)
	if bits > maxBits {
		return ErrTooHard
	}
	m.base, m.seen = at, make([]uint64, (bits+63)/64)
	return nil
}

func (m *matcher) result() []int {
	out := m.slots
	if m.best != nil {
		out = m.best
	}
	return out[:2*(m.re.groups+1)]
}

// count reports the steps since the last time.
func (m *matcher) count() error {
	n := m.steps
	m.steps = 0
	if n == 0 {
		return nil
	}
	return m.re.step(int64(n))
}

// run matches p at pos; in POSIX the longest match is kept in best. until is
// where a look-behind must end; -1: anywhere.
func (m *matcher) run(p *prog, pos, until int) (bool, error) {
	_, ok, err := m.runEnd(p, pos, until)
	return ok, err
}

// runEnd is run, and reports where the match ended.
func (m *matcher) runEnd(p *prog, pos, until int) (end int, ok bool, err error) {
	longest := !p.perl && p == m.prog
	floor := len(m.jobs)
	m.best = nil
	pc := int32(0)
	for {
		if m.steps++; m.steps >= 4096 {
			if err := m.count(); err != nil {
				return 0, false, err
			}
		}
		if p.code[pc].op == iMatch && (until < 0 || pos == until) {
			if !longest || pos == len(m.text) {
				m.best = nil
				m.jobs = m.jobs[:floor]
				return pos, true, nil
			}
			if m.best == nil || pos > m.best[1] {
				m.best = slices.Clone(m.slots)
			}
		} else if ok, next, err := m.instruction(p, pc, &pos); err != nil {
			return 0, false, err
		} else if ok {
			pc = next
			continue
		}
		var ok bool
		if pc, pos, ok = m.back(floor); !ok {
			if m.best == nil {
				return 0, false, nil
			}
			return m.best[1], true, nil
		}
	}
}

// back takes the last place to be tried.
func (m *matcher) back(floor int) (pc int32, pos int, ok bool) {
	for len(m.jobs) > floor {
		j := m.jobs[len(m.jobs)-1]
		m.jobs = m.jobs[:len(m.jobs)-1]
		if j.pc >= 0 {
			return j.pc, j.pos, true
		}
		m.slots[j.slot] = j.pos
	}
	return 0, 0, false
}

// instruction does one; ok is false when it fails.
func (m *matcher) instruction(p *prog, pc int32, pos *int) (ok bool, next int32, err error) {
	in := &p.code[pc]
	switch in.op {
	case iRune, iSet:
		return m.take(in, pos), pc + 1, nil
	case iJump:
		return true, in.x, nil
	case iSplit:
		if m.seenBefore(p, in.n, *pos) {
			return false, 0, nil
		}
		return true, in.x, m.push(job{pc: in.y, pos: *pos})
	case iSave, iMark:
		err = m.push(job{pc: -1, slot: in.n, pos: m.slots[in.n]})
		m.slots[in.n] = *pos
		return true, pc + 1, err
	case iCheck:
		return p.perl || m.slots[in.n] != *pos, m.checked(p, pc, in, *pos), nil
	case iAssert:
		return m.at(assertion(in.n), *pos), pc + 1, nil
	case iBack:
		return m.backref(in, pos), pc + 1, nil
	case iLook:
		ok, err = m.look(in, *pos)
		return ok, pc + 1, err
	case iAtomic:
		ok, err = m.atomic(in.sub, pos)
		return ok, pc + 1, err
	}
	return false, 0, nil
}

// checked is where to go at the end of a loop's turn: in Perl an empty turn
// ends the loop.
func (m *matcher) checked(p *prog, pc int32, in *inst, pos int) int32 {
	if p.perl && m.slots[in.n] == pos {
		split := p.code[p.code[pc+1].x]
		return max(split.x, split.y)
	}
	return pc + 1
}

func (m *matcher) push(j job) error {
	if len(m.jobs) >= maxJobs {
		return ErrTooHard
	}
	m.jobs = append(m.jobs, j)
	return nil
}

func (m *matcher) seenBefore(p *prog, split int32, pos int) bool {
	if m.seen == nil || p != m.prog {
		return false
	}
	bit := int(split)*(len(m.text)-m.base+1) + pos - m.base
	if m.seen[bit/64]&(1<<(bit%64)) != 0 {
		return true
	}
	m.seen[bit/64] |= 1 << (bit % 64)
	return false
}

func (m *matcher) take(in *inst, pos *int) bool {
	if *pos >= len(m.text) {
		return false
	}
	r, n := decode(m.text[*pos:], m.re.opts.Bytes)
	if in.op == iRune && r != in.r || in.op == iSet && !in.set.has(r) {
		return false
	}
	*pos += n
	return true
}

func (m *matcher) backref(in *inst, pos *int) bool {
	from, to := m.slots[2*in.n], m.slots[2*in.n+1]
	if from < 0 || to < from {
		return false
	}
	for at := from; at < to; {
		if *pos >= len(m.text) {
			return false
		}
		a, n := decode(m.text[at:], m.re.opts.Bytes)
		b, k := decode(m.text[*pos:], m.re.opts.Bytes)
		if a != b && !(in.fold && sameLetter(a, b)) {
			return false
		}
		m.steps++
		at += n
		*pos += k
	}
	return true
}

func sameLetter(a, b rune) bool {
	if a >= invalid || b >= invalid {
		return false
	}
	for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
		if f == b {
			return true
		}
	}
	return false
}

// at reports whether the place pos is what a says.
func (m *matcher) at(a assertion, pos int) bool {
	text, lines := m.text, m.re.opts.Lines
	switch a {
	case lineStart:
		return pos == 0 && m.flags&NotBOL == 0 || lines && pos > 0 && text[pos-1] == '\n'
	case lineEnd:
		return pos == len(text) && m.flags&NotEOL == 0 || lines && pos < len(text) && text[pos] == '\n'
	case textStart:
		return pos == 0 && m.flags&NotBOL == 0
	case textEnd:
		return pos == len(text) && m.flags&NotEOL == 0
	case perlEnd:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	}
	narrow := m.re.opts.Bytes || m.re.opts.Syntax == Perl
	before := m.wordBefore(pos, narrow)
	after := false
	if pos < len(text) {
		r, _ := decode(text[pos:], m.re.opts.Bytes)
		after = wordRune(r, narrow)
		if r >= invalid && !narrow {
			after = before
		}
	}
	switch a {
	case wordEdge:
		return before != after
	case notWordEdge:
		return before == after
	case wordStart:
		return !before && after
	}
	return before && !after
}

// wordBefore reports whether a word's character is before pos. As in glibc, a
// byte that is not UTF-8 is to that what stands before it.
func (m *matcher) wordBefore(pos int, narrow bool) bool {
	for pos > 0 {
		r, n := decodeLast(m.text[:pos], m.re.opts.Bytes)
		if r < invalid || narrow {
			return wordRune(r, narrow)
		}
		pos -= n
	}
	return false
}
