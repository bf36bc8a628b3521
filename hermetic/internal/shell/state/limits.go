package state

import (
	"egressd/hermetic/internal/regex"
	"egressd/hermetic/limits"
)

// Grow counts by more bytes held by variables. It ends the shell if that, or
// one value of size bytes, exceeds its limit.
func (sh *Shell) Grow(by int64, size int) {
	sh.CheckLen(size)
	sh.Work.Held += by
	if most := sh.Session.Budget.Limits.Memory / 2; sh.Work.Held > most {
		sh.Exceed(&limits.Exceeded{Name: "memory", Limit: most, What: "bytes are held by variables"})
	}
}

// CheckLen ends the shell if a string of n bytes exceeds its limit.
func (sh *Shell) CheckLen(n int) {
	if most := sh.Session.Budget.Limits.String; int64(n) > most {
		sh.Exceed(&limits.Exceeded{Name: "string", Limit: most, What: "bytes are in one string"})
	}
}

// CheckArray ends the shell if an array of n elements exceeds its limit.
func (sh *Shell) CheckArray(n int) {
	if most := sh.Session.Budget.Limits.Array; int64(n) > most {
		sh.Exceed(&limits.Exceeded{Name: "array", Limit: most, What: "elements are in one array"})
	}
}

// CheckGlobs ends the shell if the n words of one expansion exceed their limit.
func (sh *Shell) CheckGlobs(n int) {
	if most := sh.Session.Budget.Limits.Globs; int64(n) > most {
		sh.Exceed(&limits.Exceeded{Name: "globs", Limit: most, What: "words came out of one expansion"})
	}
}

// TooNested ends the shell because syntax is nested too deeply.
func (sh *Shell) TooNested() {
	sh.Exceed(&limits.Exceeded{Name: "nesting", Limit: sh.Session.Budget.Limits.Nesting, What: "pieces of syntax are inside each other"})
}

// Regex is the expression of the last =~, kept for loops.
type Regex struct {
	Text string
	Fold bool
	Re   *regex.Regexp
}

// TooDeep ends the session because calls are nested deeper than most.
func (s *Session) TooDeep(most int64) {
	s.Budget.Exceed(&limits.Exceeded{Name: "calls", Limit: most, What: "functions, substitutions and scripts ran inside each other"})
}

// CheckLimit ends the shell if the session has exceeded a limit.
func (sh *Shell) CheckLimit() {
	if sh.Session.Budget.Cause() != nil {
		panic(Ended{Status: 126})
	}
}

// TooManyFiles ends the shell because too many files are open.
func (sh *Shell) TooManyFiles() {
	l := sh.Session.Budget.Limits.Files
	sh.Exceed(&limits.Exceeded{Name: "files", Limit: l, What: "files and descriptors were open at once"})
}

// MaxTree bounds recursion over lists and expressions.
const MaxTree = 20_000
