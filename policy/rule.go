package policy

import "egressd/policy/internal/grammar"

// Rule is one compiled rule. Read-only.
type Rule struct {
	Text string
	Pos  Pos

	// Index counts the rules of one list (allow or deny, as Deny says) from 0 in
	// source order.
	Index int
	Deny  bool

	parsed *grammar.Pattern // what Text means; nil for a plain host name, which means itself
}

// pattern reports what the rule means. Rules of a list of a million plain names
// carry no pattern each: it is made again from the name.
func (r *Rule) pattern() grammar.Pattern {
	if r.parsed != nil {
		return *r.parsed
	}
	return grammar.Plain(r.Text, r.Deny)
}

// Pos is where a rule was written: a file with line and column (1-based), or a
// flag ("--allow") with Line as its ordinal and Column 0.
type Pos struct {
	File         string
	Line, Column int
}
