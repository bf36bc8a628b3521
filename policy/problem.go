package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"egressd/policy/internal/grammar"
)

// Problem is one error in policy text: where, what, and how to fix it. Errors
// of ParseFile and Compile hold one each, joined; errors.As finds the first.
type Problem struct {
	Pos  Pos
	What string
	Fix  string
}

// Error reports "file:line:column: what: how to fix it".
func (p *Problem) Error() string {
	s := p.What
	if at := p.Pos.String(); at != "" {
		s = at + ": " + s
	}
	if p.Fix != "" {
		s += ": " + p.Fix
	}
	return s
}

// String reports "file:line:column", or "--allow #2" for a flag; "" for the
// zero Pos.
func (p Pos) String() string { return string(p.AppendTo(nil)) }

// AppendTo appends what String reports to b.
func (p Pos) AppendTo(b []byte) []byte {
	b = append(b, p.File...)
	switch {
	case p.File == "" && p.Line == 0:
	case p.Column > 0:
		b = strconv.AppendInt(append(b, ':'), int64(p.Line), 10)
		b = strconv.AppendInt(append(b, ':'), int64(p.Column), 10)
	case p.Line > 0:
		b = strconv.AppendInt(append(b, " #"...), int64(p.Line), 10)
	}
	return b
}

// Implementation constants.
const (
	maxProblems     = 50   // more are counted, not listed
	maxProblemBytes = 1000 // of what a problem says, and of its fix: a file's text may be of any length
)

// problems collects, so that one run shows all that is wrong.
type problems struct {
	list []error
	more int
}

// add books one problem; fix says what to write instead.
func (ps *problems) add(pos Pos, fix, format string, args ...any) {
	if len(ps.list) == maxProblems {
		ps.more++
		return
	}
	ps.list = append(ps.list, &Problem{Pos: pos, What: shorten(fmt.Sprintf(format, args...)), Fix: shorten(fix)})
}

// shorten leaves the middle of a long text out.
func shorten(s string) string {
	if len(s) <= maxProblemBytes {
		return s
	}
	const half = maxProblemBytes/2 - len(" ... ")
	return strings.ToValidUTF8(s[:half], "") + " ... " + strings.ToValidUTF8(s[len(s)-half:], "")
}

// addError books err, with its fix where it is the grammar's.
func (ps *problems) addError(pos Pos, err error) {
	var fe *grammar.Error
	if errors.As(err, &fe) {
		ps.add(pos, fe.Fix, "%s", fe.What)
		return
	}
	ps.add(pos, "", "%s", err)
}

// merge takes over what other collected.
func (ps *problems) merge(other problems) {
	for _, err := range other.list {
		if len(ps.list) == maxProblems {
			ps.more++
			continue
		}
		ps.list = append(ps.list, err)
	}
	ps.more += other.more
}

// sort orders the problems of one file as a reader meets them.
func (ps *problems) sort() {
	at := func(err error) Pos {
		var p *Problem
		if errors.As(err, &p) {
			return p.Pos
		}
		return Pos{}
	}
	slices.SortStableFunc(ps.list, func(a, b error) int {
		x, y := at(a), at(b)
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
}

// err reports all problems, or nil.
func (ps *problems) err() error {
	if ps.more > 0 {
		return errors.Join(append(ps.list, fmt.Errorf("and %d more", ps.more))...)
	}
	return errors.Join(ps.list...)
}
