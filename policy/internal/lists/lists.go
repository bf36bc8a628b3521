// Package lists keeps a long list of rules as the text it was written in, with a
// table of where its names stand: a million names take their text and about
// seven bytes each. What else a rule means, and its place, is read from the text
// again when a name is found.
//
//	l, problems := lists.Read(text, lists.Options{Plain: plain, Broad: broad, Parse: parse})
//	f := l.Find("api.example.com", lists.Apex)
//	for at, ok := f.Next(); ok; at, ok = f.Next() {
//		item := l.At(at) // the rule's text, line, column and ordinal
//	}
package lists

import (
	"bytes"
	"crypto/sha256"
	"runtime"
	"slices"
)

// Scope says which hosts a name in a list covers. Zero: it is not a valid name.
type Scope uint8

// The scopes are bits: Apex|Below is a domain and all below it.
const (
	Apex  Scope = 1 << iota // the name itself
	Below                   // the names below it, at any depth
)

// MaxBytes bounds the text of one list.
const MaxBytes = 1 << offsetBits

// Implementation constants.
const (
	maxLineBytes = 8192 // of a line; a rule has 4096 at most
	maxProblems  = 50   // more are counted, not listed
	markEvery    = 16   // rules between two marks, at least
	turnRules    = 1024 // read before others may run, some 0.2 ms
	sumBytes     = 128 << 10
	maxSameName  = 8 // rules with ports about one name in the table; more are Others

	offsetBits = 26 // of a slot, then the scope, then a tag
	tagShift   = offsetBits + 2
)

// Item is one rule of a list.
type Item struct {
	Text    string // as a policy file spells it
	Ordinal int    // how many rules stand before it
	Line    int    // from 1
	Column  int    // from 1
}

// Problem is a line that cannot be read.
type Problem struct {
	Line, Column int
	What, Fix    string
	Err          error // of Options.Parse, in the place of What and Fix
}

// Options say how to read a list. The functions are mandatory.
type Options struct {
	Format Format // Auto: what its first line shows
	Skip   bool   // leave out what cannot be read, and count it

	// Plain reports whether a name is in its one canonical spelling.
	Plain func(name []byte) bool
	// Broad reports whether no rule may cover everything below name.
	Broad func(name string) bool
	// Parse reads a rule that is more than such a name. It reports the canonical name
	// that it is about, "" for an address, a path or a protocol.
	Parse func(rule string) (name string, scope Scope, err error)
}

// List is a list that was read. It never changes: safe for concurrent use.
type List struct {
	data   []byte
	format Format
	skip   bool
	sum    [sha256.Size]byte
	table
	marks   []mark
	others  []Item
	odd     []uint32 // offsets of others, sorted
	bad     []uint32 // offsets of rules that were left out, sorted
	twice   []uint32 // offsets of rules that say what one before them says, sorted
	rules   int
	skipped int
}

// mark is the beginning of a line, and how many rules stand before it.
type mark struct{ off, line, rules uint32 }

// Read reads a list. data belongs to the list from then on. With problems there
// is no list; under Options.Skip only a text that is too long is one. more is how
// many problems were not listed.
func Read(data []byte, o Options) (l *List, found []Problem, more int) {
	if len(data) >= MaxBytes {
		return nil, []Problem{{Line: 1, Column: 1, What: "the list is 64 MiB or longer", Fix: "split it, or list domains with all below them (*.example.com)"}}, 0
	}
	data = withoutBOM(data)
	l = &List{data: data, format: o.Format, skip: o.Skip, sum: sumOf(data)}
	if l.format == Auto {
		l.format = detect(data)
	}
	l.table = newTable(data, bytes.Count(data, []byte{'\n'})+1)
	b := builder{l: l, o: &o}
	w := walker{data: data, format: l.format, rule: b.rule, unknown: b.unknown}
	w.from(mark{line: 1})
	if len(b.problems) > 0 {
		return nil, b.problems, b.more
	}
	l.table.fit()
	l.marks, l.others = slices.Clip(l.marks), slices.Clip(l.others)
	l.odd, l.bad, l.twice = slices.Clip(l.odd), slices.Clip(l.bad), slices.Clip(l.twice)
	return l, nil, 0
}

// sumOf is the SHA-256 of data. It lets others run in between: a policy is loaded
// while clients are served.
func sumOf(data []byte) [sha256.Size]byte {
	h := sha256.New()
	for len(data) > 0 {
		n := min(len(data), sumBytes)
		h.Write(data[:n])
		data = data[n:]
		runtime.Gosched()
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// builder reads a list the first time.
type builder struct {
	l        *List
	o        *Options
	problems []Problem
	more     int
}

func (b *builder) problem(p Problem) {
	switch {
	case b.o.Skip:
		b.l.skipped++
	case len(b.problems) < maxProblems:
		b.problems = append(b.problems, p)
	default:
		b.more++
	}
}

func (b *builder) unknown(s span, what, fix string) {
	b.problem(Problem{Line: s.line, Column: s.start - s.bol + 1, What: what, Fix: fix})
}

// rule files one rule.
func (b *builder) rule(s span) bool {
	l := b.l
	at, scope := l.format.name(l.data, s)
	name := l.data[at:s.end]
	inTable := b.o.Plain(name) && (scope&Below == 0 || !b.o.Broad(string(name)))
	text := ""
	if !inTable {
		text = l.format.text(l.data, s)
		canonical, means, err := b.o.Parse(text)
		if err == nil && l.format != Rules && (canonical == "" || means != scope) {
			b.unknown(s, "this is no host name", "write a name such as ads.example.com")
			l.bad = append(l.bad, uint32(s.start))
			return true
		}
		if err != nil {
			b.problem(Problem{Line: s.line, Column: s.start - s.bol + 1, Err: err})
			l.bad = append(l.bad, uint32(s.start))
			return true
		}
		name = l.data[at:l.nameEnd(at)]
		inTable = canonical != "" && means == scope && canonical == string(name)
	}
	if last := len(l.marks) - 1; last < 0 || l.rules >= int(l.marks[last].rules)+markEvery && s.line > int(l.marks[last].line) && s.first {
		l.marks = append(l.marks, mark{uint32(s.bol), uint32(s.line), uint32(l.rules)})
	}
	result := crowded
	if inTable {
		result = l.table.add(at, name, scope)
	}
	switch result {
	case added:
	case again:
		l.twice = append(l.twice, uint32(s.start))
	case crowded:
		if text == "" {
			text = l.format.text(l.data, s)
		}
		l.others = append(l.others, Item{Text: text, Ordinal: l.rules, Line: s.line, Column: s.start - s.bol + 1})
		l.odd = append(l.odd, uint32(s.start))
	}
	if l.rules++; l.rules%turnRules == 0 {
		runtime.Gosched()
	}
	return true
}

// Rules reports how many rules the list holds, duplicates included.
func (l *List) Rules() int { return l.rules }

// Names reports how many names are in the table, each once.
func (l *List) Names() int { return l.names }

// Bytes reports what l takes in memory.
func (l *List) Bytes() int {
	return cap(l.data) + 4*(cap(l.slots)+cap(l.odd)+cap(l.bad)+cap(l.twice)) + 12*cap(l.marks) + 100*len(l.others)
}

// Skipped reports how much of it was left out.
func (l *List) Skipped() int { return l.skipped }

// Format reports what the list was read as, never Auto.
func (l *List) Format() Format { return l.format }

// Others are the rules that the table does not hold: addresses, paths, names in
// another than their canonical spelling, in order.
func (l *List) Others() []Item { return l.others }

// Sum is the SHA-256 of the text.
func (l *List) Sum() [sha256.Size]byte { return l.sum }

// Same reports whether l is what Read makes of data, for the same functions.
func (l *List) Same(data []byte, format Format, skip bool) bool {
	data = withoutBOM(data)
	if format == Auto {
		format = detect(data)
	}
	return format == l.format && skip == l.skip && len(data) == len(l.data) && sumOf(data) == l.sum
}

// At reports the rule whose name stands at offset at, as Next reported it.
func (l *List) At(at uint32) (item Item) {
	i, _ := slices.BinarySearchFunc(l.marks, at+1, func(m mark, at uint32) int { return int(m.off) - int(at) })
	m := l.marks[max(i-1, 0)]
	l.walk(m, func(s span, n int) bool {
		name, _ := l.format.name(l.data, s)
		if uint32(name) != at {
			return true
		}
		item = l.item(s, n)
		return false
	})
	return item
}

// Kind says where a rule of a list is kept.
type Kind uint8

// The kinds.
const (
	InTable Kind = iota
	Again        // in the table, where another line says the same
	Other        // one of Others
)

// Each calls yield with every rule in order, until it reports false.
func (l *List) Each(yield func(Item, Kind) bool) {
	l.walk(mark{line: 1}, func(s span, n int) bool {
		kind := InTable
		switch {
		case has(l.odd, s.start):
			kind = Other
		case has(l.twice, s.start):
			kind = Again
		}
		return yield(l.item(s, n), kind)
	})
}

// Beyond calls yield, until it reports false, with every rule in the table that none
// of others says in the same words. Rules with ports are not compared. It allocates
// only for what it yields.
func (l *List) Beyond(others []*List, yield func(Item) bool) {
	l.walk(mark{line: 1}, func(s span, n int) bool {
		at, scope := l.format.name(l.data, s)
		end := l.nameEnd(at)
		if has(l.odd, s.start) || has(l.twice, s.start) {
			return true
		}
		if !l.ported(end) {
			for _, other := range others {
				if other.bare(l.data[at:end], scope) {
					return true
				}
			}
		}
		return yield(l.item(s, n))
	})
}

func has(sorted []uint32, at int) bool {
	_, ok := slices.BinarySearch(sorted, uint32(at))
	return ok
}

// walk goes through the rules from m on. n is the ordinal of a rule.
func (l *List) walk(m mark, yield func(s span, n int) bool) {
	n := int(m.rules)
	first := n
	w := walker{data: l.data, format: l.format, unknown: func(span, string, string) {}}
	w.rule = func(s span) bool {
		if has(l.bad, s.start) {
			return true
		}
		if n++; (n-first)%turnRules == 0 {
			runtime.Gosched()
		}
		return yield(s, n-1)
	}
	w.from(m)
}

func (l *List) item(s span, n int) Item {
	return Item{Text: l.format.text(l.data, s), Ordinal: n, Line: s.line, Column: s.start - s.bol + 1}
}
