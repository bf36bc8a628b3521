package policy

import (
	"iter"
	"slices"
	"sync/atomic"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/lists"
)

// Implementation constant: rules of a list that are kept ready. Others are read
// from the list's text when they decide, which costs an allocation.
const listedReady = 1024

// listed is a list file in an index.
type listed struct {
	table *listTable
	file  string
	first int // Rule.Index of its first rule
	deny  bool
	asked string // listFile.Format
	skip  bool
	ready [listedReady]atomic.Pointer[listedRule]
}

// listedRule is one rule of a list, made when it was found.
type listedRule struct {
	at       uint32
	rule     Rule
	pattern  grammar.Pattern
	compiled compiled
}

// rule reports the rule whose name stands at offset at.
func (l *listed) rule(at uint32) *compiled {
	ready := &l.ready[at*2654435769>>22] // Fibonacci hashing: 1024 places
	r := ready.Load()
	if r == nil || r.at != at {
		r = l.read(l.table.At(at))
		r.at = at
		ready.Store(r)
	}
	return &r.compiled
}

// read makes the rule of an item.
func (l *listed) read(item lists.Item) *listedRule {
	p := l.pattern(item)
	r := &listedRule{pattern: p}
	r.rule = Rule{Text: item.Text, Pos: Pos{File: l.file, Line: item.Line, Column: item.Column}, Index: l.first + item.Ordinal, Deny: l.deny}
	r.rule.parsed = &r.pattern
	r.compiled = compiled{rule: &r.rule, ports: p.Ports, path: p.Path, raw: p.Raw, next: -1}
	return r
}

// pattern is what an item of l means, and ports are those of the rule whose name
// stands at offset at. Both are the same for all but a few.
func (l *listed) pattern(item lists.Item) grammar.Pattern {
	p, err := grammar.Parse(item.Text, l.deny)
	if err != nil && l.deny {
		p.Ports = grammar.AnyPort // unreachable: the text was parsed when the list was read
	}
	return p
}

func (l *listed) ports(at uint32) grammar.Ports {
	switch {
	case l.table.Ported(at):
		return l.rule(at).ports
	case l.deny:
		return grammar.AnyPort
	}
	return grammar.WebPorts
}

// lists compiles list files. They are documents of their own: a name that is on
// an allow list and on a deny list is denied, and no error.
func (c *compiler) lists(files []listFile, deny bool) {
	for i := range files {
		f := files[i]
		if f.table == nil && f.Text != nil { // it came from a launcher
			c.errs.merge(f.parse(deny, nil))
		}
		ix := c.p.allow
		if deny {
			ix = c.p.deny
		}
		switch {
		case f.table == nil:
			// Threat: a program forgets to read a deny list -> there is no policy.
			c.errs.add(f.Pos, "read the document's lists before it is compiled", "the list %s was not read", f.Path)
			return
		case len(ix.lists) == maxListFiles:
			c.errs.add(f.Pos, "join some of them", "more than %d list files", maxListFiles)
			return
		}
		for _, o := range f.table.Others() {
			e := Entry{Text: o.Text, Pos: Pos{File: f.Path, Line: o.Line, Column: o.Column}}
			r, p, ok := c.ruleAt(e, deny, ix.count+o.Ordinal)
			if ok && !deny {
				c.checkDialable(r, p)
			}
		}
		ix.lists = append(ix.lists, &listed{table: f.table, file: f.Path, first: ix.count, deny: deny, asked: f.Format, skip: f.Skip})
		ix.count += f.table.Rules()
	}
}

// listed goes through the list files of one list, allow or deny.
func (p *Policy) listed(deny bool) iter.Seq[*listed] {
	switch {
	case p == nil || !p.loaded:
		return func(func(*listed) bool) {}
	case deny:
		return slices.Values(p.deny.lists)
	}
	return slices.Values(p.allow.lists)
}

// Each reports the rules of one list, allow or deny, in source order. Those of
// list files are made as they are asked for.
func (p *Policy) Each(deny bool) iter.Seq[*Rule] {
	return func(yield func(*Rule) bool) {
		if p == nil || !p.loaded {
			return
		}
		ix, rules := p.allow, p.allowRules
		if deny {
			ix, rules = p.deny, p.denyRules
		}
		before := func(index int) bool { // yields the single rules before index
			for len(rules) > 0 && rules[0].Index < index {
				r := rules[0]
				rules = rules[1:]
				if !yield(r) {
					return false
				}
			}
			return true
		}
		for _, l := range ix.lists {
			ok := true
			l.table.Each(func(item lists.Item, kind lists.Kind) bool {
				ok = before(l.first+item.Ordinal) && (kind == lists.Other || yield(&l.read(item).rule))
				return ok
			})
			if !ok {
				return
			}
		}
		before(ix.count)
	}
}

// Own lists the rules of one list, allow or deny, that are in no list file.
func (p *Policy) Own(deny bool) (out []*Rule) {
	if p == nil || !p.loaded {
		return nil
	}
	ix, rules := p.allow, p.allowRules
	if deny {
		ix, rules = p.deny, p.denyRules
	}
	for _, r := range rules {
		if !slices.ContainsFunc(ix.lists, func(l *listed) bool { return r.Index >= l.first && r.Index < l.first+l.table.Rules() }) {
			out = append(out, r)
		}
	}
	return out
}

// Count reports how many rules there are, those of list files included.
func (p *Policy) Count() (allow, deny int) {
	if p == nil || !p.loaded {
		return 0, 0
	}
	return p.allow.count, p.deny.count
}

// Lists reports the list files: of what is allowed, and of what is denied. Format
// is what each was read as, and Text is nil.
func (p *Policy) Lists() (allow, deny []listFile) {
	if p == nil || !p.loaded {
		return nil, nil
	}
	return p.allow.files(), p.deny.files()
}

func (ix *index) files() (out []listFile) {
	for _, l := range ix.lists {
		out = append(out, listFile{Path: l.file, Format: l.table.Format().String(), table: l.table})
	}
	return out
}

// ListBytes reports the memory that list files take, each once.
func (p *Policy) ListBytes() (n int) {
	for ; p != nil && p.loaded; p = p.ceiling {
		for _, l := range slices.Concat(p.allow.lists, p.deny.lists) {
			n += l.table.Bytes()
		}
	}
	return n
}
