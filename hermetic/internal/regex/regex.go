// Package regex is the regular expressions of the hermetic commands: POSIX
// basic and extended with GNU's additions, and a subset of Perl's. Text is
// bytes that are UTF-8 where they are; a byte that is not matches itself and
// nothing else. Matching is bounded by the caller's count of steps.
package regex

import (
	"errors"
	"unicode/utf8"
)

// Options say how an expression is read and what it matches.
type Options struct {
	Syntax  Syntax
	Fold    bool // letters match in both cases
	Lines   bool // ^ and $ match at newlines inside the text, too
	DotLine bool // "." and "[^a]" do not match a newline
	Bytes   bool // every byte is a character, as in the C locale

	// Steps counts n steps of matching; its error ends the match. Nil: never.
	Steps func(n int64) error
}

// Flags say what the text is part of.
type Flags uint8

// What is not a line's begin or end although the text is: regexec's flags.
const (
	NotBOL Flags = 1 << iota
	NotEOL
)

// ErrTooHard reports a match that needs more memory than one may have.
var ErrTooHard = errors.New("stack overflow: the regular expression needs too much memory for this text")

// Regexp is a compiled expression. Safe for concurrent use when Steps is.
type Regexp struct {
	opts     Options
	root     *node
	groups   int // without the whole
	names    map[string]int
	warnings []string

	prog      *prog
	fast      *fast
	ambiguous bool // which of several ways a match is made shows in its groups
	backrefs  bool
}

// Compile reads expr. Its errors are those of GNU's regcomp and of grep -P.
func Compile(expr string, o Options) (*Regexp, error) { return CompileAny([]string{expr}, o) }

// CompileAny makes an expression that matches what any of exprs does. Each has
// its own back-references; no expression at all matches nothing.
func CompileAny(exprs []string, o Options) (*Regexp, error) {
	re := &Regexp{opts: o}
	var alts []*node
	for _, e := range exprs {
		p := parser{src: e, opts: o, group: re.groups, first: re.groups}
		n, err := p.parseAll()
		if err != nil {
			return nil, err
		}
		re.groups, re.names = p.group, p.perl.names
		re.backrefs = re.backrefs || p.backrefs
		re.warnings = append(re.warnings, p.warnings...)
		alts = append(alts, n)
	}
	re.root = alternate(alts)
	var err error
	if re.prog, err = compile(re.root, o, re.groups); err != nil {
		return nil, err
	}
	re.ambiguous = o.Syntax != Perl && !re.backrefs && re.groups > 0 && ambiguous(re.root, false)
	re.fast = newFast(re.root, o)
	return re, nil
}

// Groups reports how many groups the expression has.
func (re *Regexp) Groups() int { return re.groups }

// Names are the names of the groups, the first group's first; "" where there is
// none.
func (re *Regexp) Names() []string {
	names := make([]string, re.groups)
	for name, n := range re.names {
		names[n-1] = name
	}
	return names
}

// Needs is a text that is in every match; nil: none is known. A line without
// it needs no look.
func (re *Regexp) Needs() []byte {
	if len(re.fast.literal) > 0 {
		return re.fast.literal
	}
	return re.fast.need
}

// Warnings reports what grep warns of: "* at start of expression".
func (re *Regexp) Warnings() []string { return re.warnings }

// Match reports whether the expression matches somewhere in text.
func (re *Regexp) Match(text []byte) (bool, error) {
	_, _, err := re.Index(text, 0, 0)
	return err == nil, notFound(err)
}

func notFound(err error) error {
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}

// errNone is how the engines report that there is no match.
var errNone = errors.New("no match")

// Span finds the leftmost match that starts at text[at] or after; start is -1
// when there is none. What is before at counts as context: ^ matches at 0 only.
func (re *Regexp) Span(text []byte, at int, f Flags) (start, end int, err error) {
	start, end, err = re.Index(text, at, f)
	if err != nil {
		return -1, -1, notFound(err)
	}
	return start, end, nil
}

// Index is Span with an error for no match.
func (re *Regexp) Index(text []byte, at int, f Flags) (start, end int, err error) {
	loc, err := re.find(text, at, f, false)
	if err != nil {
		return -1, -1, err
	}
	return loc[0], loc[1], nil
}

// Find is Span with the groups: pairs of offsets, -1 for a group that had no
// part in the match; nil when there is no match.
func (re *Regexp) Find(text []byte, at int, f Flags) ([]int, error) {
	loc, err := re.find(text, at, f, true)
	if err != nil {
		return nil, notFound(err)
	}
	return loc, nil
}

func (re *Regexp) find(text []byte, at int, f Flags, groups bool) ([]int, error) {
	if at > len(text) {
		return nil, errNone
	}
	loc, exact, err := re.fast.find(re, text, at, f, groups)
	if err != nil {
		return nil, err
	}
	if !exact {
		if loc != nil {
			at = max(at, loc[0])
		}
		m := matcher{re: re, prog: re.prog, text: text, flags: f}
		if loc, err = m.search(at); err != nil {
			return nil, err
		}
	}
	if groups && re.ambiguous {
		return re.posixGroups(text, loc, f)
	}
	return loc, nil
}

func (re *Regexp) step(n int64) error {
	if re.opts.Steps == nil {
		return nil
	}
	return re.opts.Steps(n)
}

// invalid is what a byte that is not UTF-8 is as a rune: above them all.
const invalid = utf8.MaxRune + 1

// decode reads one character of text.
func decode(text []byte, single bool) (r rune, size int) {
	if c := text[0]; c < utf8.RuneSelf || single {
		return rune(c), 1
	}
	r, size = utf8.DecodeRune(text)
	if r == utf8.RuneError && size == 1 {
		return invalid + rune(text[0]), 1
	}
	return r, size
}

// decodeLast reads the last character of text.
func decodeLast(text []byte, single bool) (r rune, size int) {
	if c := text[len(text)-1]; c < utf8.RuneSelf || single {
		return rune(c), 1
	}
	r, size = utf8.DecodeLastRune(text)
	if r == utf8.RuneError && size == 1 {
		return invalid + rune(text[len(text)-1]), 1
	}
	return r, size
}
