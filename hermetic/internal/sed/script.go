package sed

import (
	"fmt"

	"egressd/hermetic/internal/regex"
)

// chunk is one -e or -f.
type chunk struct {
	number int // of -e, from 1
	file   string
	text   string
}

// addrKind is what an address is.
type addrKind int

const (
	addrNone  addrKind = iota
	addrLine           // n
	addrStep           // n~m
	addrLast           // $
	addrRegex          // re; the empty one has none
	addrPlus           // +n, second only
	addrUntil          // ~n, second only
	addrZero           // 0, before a regex
)

type address struct {
	kind addrKind
	n, m int64
	re   *regex.Regexp // nil in a regex: the last one that was used
}

// command of a script.
type instruction struct {
	a1, a2 address
	negate bool
	name   byte
	text   []byte // of a, i, c; the file of r, R, w, W; the command of e
	label  string
	jump   int // where b, t, T and an unmatched { go
	number int // of q, Q, l; -1: none
	sub    *substitution
	table  map[string]string // of y
	out    *output

	active bool  // in a range
	begun  bool  // the range has been entered once
	until  int64 // the line that ends it, when that is known
}

// substitution is what s does.
type substitution struct {
	re       *regex.Regexp // nil: the last one that was used
	parts    []part
	global   bool
	printing int // how many p: before and after e
	nth      int
	eval     bool
	out      *output
	maxGroup int
}

// caseMode is how a replacement changes letters.
type caseMode byte

const (
	caseNone  caseMode = iota
	caseUpper          // \U
	caseLower          // \L
	caseEnd            // \E
	caseNextUpper
	caseNextLower
)

// part of a replacement: a text, a group (0: all that matched), or a change of
// case.
type part struct {
	text  []byte
	group int
	mode  caseMode
}

// program is a script, compiled.
type program struct {
	code  []*instruction
	quiet bool // its first line is #n
	outs  map[string]*output
	std   *output
}

// scriptError is a mistake at a place of a script.
func (p *parser) bad(format string, args ...any) error {
	where, at := p.place()
	text := fmt.Sprintf(format, args...)
	if where.file != "" {
		return fail(statusUsage, "file %s line %d: %s", where.file, at, text)
	}
	return fail(statusUsage, "-e expression #%d, char %d: %s", where.number, at, text)
}
