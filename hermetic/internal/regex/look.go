package regex

import "slices"

// look matches what is around pos without taking it.
func (m *matcher) look(in *inst, pos int) (bool, error) {
	if m.depth++; m.depth > maxSubs {
		return false, ErrTooHard
	}
	defer func() { m.depth-- }()
	keep := slices.Clone(m.slots)
	best := m.best
	ok, err := m.lookOnce(in, pos)
	m.best = best
	if err != nil {
		return false, err
	}
	if !ok || in.negated {
		copy(m.slots, keep)
		return ok != in.negated, nil
	}
	return true, m.undo(keep)
}

// lookOnce tries the text ahead, or every text behind that is long enough.
func (m *matcher) lookOnce(in *inst, pos int) (bool, error) {
	if !in.behind {
		return m.run(in.sub, pos, -1)
	}
	at, n := pos, 0
	for {
		if n >= in.sub.min {
			if ok, err := m.run(in.sub, at, pos); ok || err != nil {
				return ok, err
			}
		}
		if at == 0 || in.sub.max >= 0 && n >= in.sub.max {
			return false, nil
		}
		_, size := decodeLast(m.text[:at], m.re.opts.Bytes)
		at -= size
		n++
	}
}

// undo notes how the slots were before, for when one goes back.
func (m *matcher) undo(keep []int) error {
	for i, was := range keep {
		if m.slots[i] != was {
			if err := m.push(job{pc: -1, slot: int32(i), pos: was}); err != nil {
				return err
			}
		}
	}
	return nil
}

// atomic matches p and gives nothing back.
func (m *matcher) atomic(p *prog, pos *int) (bool, error) {
	if m.depth++; m.depth > maxSubs {
		return false, ErrTooHard
	}
	defer func() { m.depth-- }()
	keep := slices.Clone(m.slots)
	best := m.best
	end, ok, err := m.runEnd(p, *pos, -1)
	m.best = best
	if !ok || err != nil {
		copy(m.slots, keep)
		return false, err
	}
	*pos = end
	return true, m.undo(keep)
}
