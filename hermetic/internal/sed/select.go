package sed

import "egressd/hermetic/internal/regex"

// selected reports whether in is for the current line.
func (m *machine) selected(in *instruction) (bool, error) {
	if in.a1.kind == addrNone {
		return !in.negate, nil
	}
	var match bool
	var err error
	if in.a2.kind == addrNone {
		match, err = m.matches(&in.a1)
	} else {
		match, err = m.inRange(in)
	}
	return match != in.negate, err
}

// matches reports whether the line is what a says.
func (m *machine) matches(a *address) (bool, error) {
	switch a.kind {
	case addrLine:
		return m.in.number == a.n, nil
	case addrStep:
		return m.in.number >= a.n && (m.in.number-a.n)%a.m == 0, nil
	case addrLast:
		more, err := m.in.moreOfFile()
		return !more, err
	case addrRegex:
		re, err := m.regex(a.re)
		if err != nil {
			return false, err
		}
		return re.Match(m.pattern)
	}
	return false, nil
}

// regex is re, or the last one that was used when it is nil.
func (m *machine) regex(re *regex.Regexp) (*regex.Regexp, error) {
	if re == nil {
		re = m.last
	}
	if re == nil {
		return nil, fail(statusUsage, "-e expression #1, char 0: no previous regular expression")
	}
	m.last = re
	return re, nil
}

// inRange reports whether the line is in the range of in, and moves it on.
func (m *machine) inRange(in *instruction) (bool, error) {
	if !in.active {
		match, err := m.matches(&in.a1)
		if err == nil && !match && m.late(in) {
			match = true
		}
		if !match || err != nil {
			return false, err
		}
		in.begun = true
		return true, m.enter(in)
	}
	switch in.a2.kind {
	case addrLine, addrPlus, addrUntil:
		if m.in.number >= in.until {
			in.active = false
		}
		// A line after the end begins no range: it is one only when the first
		// address says so.
		if m.in.number > in.until {
			match, err := m.matches(&in.a1)
			if !match || err != nil {
				return false, err
			}
			return true, m.enter(in)
		}
		return true, nil
	}
	match, err := m.matches(&in.a2)
	if match {
		in.active = false
	}
	return true, err
}

// late reports whether a range that a line number begins is still to begin
// because its line never came here: "1d;1,3p" prints the lines 2 and 3.
func (m *machine) late(in *instruction) bool {
	if in.begun || in.a1.kind != addrLine || m.in.number <= in.a1.n {
		return false
	}
	return in.a2.kind != addrLine || m.in.number <= in.a2.n
}

// enter begins a range at the current line.
func (m *machine) enter(in *instruction) error {
	n := m.in.number
	switch in.a2.kind {
	case addrLine:
		in.until = in.a2.n
	case addrPlus:
		in.until = n + in.a2.n
	case addrUntil:
		in.until = n
		if in.a2.n > 0 {
			in.until = (n/in.a2.n + 1) * in.a2.n
		}
	case addrLast:
		more, err := m.in.moreOfFile()
		in.active = more
		return err
	default:
		in.active = true
		return nil
	}
	in.active = in.until > n
	return nil
}
