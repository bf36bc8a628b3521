// Package pattern matches shell patterns (XCU 2.13 and bash's extended ones).
// The work is bounded by the length of the pattern times that of the text,
// whatever they are; nothing backtracks.
package pattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Options says how a pattern is read.
type Options struct {
	Fold bool // ignore case
	Ext  bool // ?(a|b) *( ) +( ) @( ) !( )

	// Step is called with the steps of work since the last call. It can panic to
	// end the match. Nil: not called.
	Step func(n int)
}

type kind byte

const (
	char kind = iota
	anyChar
	star
	set
	group
)

type node struct {
	kind kind
	r    rune // char: the character; group: its operator
	set  *class
	alts [][]node
}

// Pattern is a compiled pattern. It does not change, so goroutines can share
// it.
type Pattern struct {
	nodes  []node
	fold   bool
	step   func(n int)
	groups bool
	lit    string // the text, if nothing is special
	isLit  bool
}

// Compile compiles a pattern. A backslash quotes the next character. Every text
// is a pattern: what is not well formed matches itself.
func Compile(text string, o Options) *Pattern {
	p := &Pattern{fold: o.Fold, step: o.Step}
	if p.step == nil {
		p.step = func(int) {}
	}
	c := compiler{text: text, o: o}
	p.nodes, _ = c.sequence(0, false, 0)
	p.groups = c.groups
	if !o.Fold {
		var b strings.Builder
		p.isLit = true
		for _, n := range p.nodes {
			if n.kind != char {
				p.isLit = false
				break
			}
			writeChar(&b, n.r)
		}
		p.lit = b.String()
	}
	return p
}

// Literal is the only text that p matches; ok is false if it can match others.
func (p *Pattern) Literal() (text string, ok bool) { return p.lit, p.isLit }

// Special reports whether a pattern has a character that matches more than
// itself, as a glob needs.
func Special(text string, ext bool) bool {
	bracket := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			i++
		case '*', '?':
			return true
		case '[':
			bracket = true
		case ']':
			if bracket {
				return true
			}
		case '+', '@', '!':
			if ext && i+1 < len(text) && text[i+1] == '(' {
				return true
			}
		}
	}
	return false
}

// Quote quotes every special character of s.
func Quote(s string) string {
	if !strings.ContainsAny(s, `\*?[]()|+@!-^`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`\*?[]()|+@!-^`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Unquote removes the backslashes of a pattern.
func Unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

type compiler struct {
	text   string
	o      Options
	groups bool
}

// maxGroups bounds how deep groups are nested; deeper ones are ordinary text.
const maxGroups = 50

// sequence reads nodes from at on; within a group it stops at | and ).
func (c *compiler) sequence(at int, inGroup bool, depth int) (nodes []node, end int) {
	for at < len(c.text) {
		switch b := c.text[at]; {
		case inGroup && (b == '|' || b == ')'):
			return nodes, at
		case c.o.Ext && depth < maxGroups && strings.IndexByte("?*+@!", b) >= 0 && at+1 < len(c.text) && c.text[at+1] == '(':
			if g, e, ok := c.group(at, depth); ok {
				nodes, at = append(nodes, g), e
				continue
			}
		}
		var n node
		n, at = c.one(at)
		if n.kind == star && len(nodes) > 0 && nodes[len(nodes)-1].kind == star {
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes, at
}

func (c *compiler) one(at int) (n node, end int) {
	switch c.text[at] {
	case '*':
		return node{kind: star}, at + 1
	case '?':
		return node{kind: anyChar}, at + 1
	case '[':
		if s, e, ok := readClass(c.text, at, c.o.Fold); ok {
			return node{kind: set, set: s}, e
		}
	case '\\':
		if at+1 < len(c.text) {
			at++
		}
	}
	r, size := decode(c.text[at:])
	if c.o.Fold {
		r = unicode.ToLower(r)
	}
	return node{kind: char, r: r}, at + size
}

func (c *compiler) group(at, depth int) (n node, end int, ok bool) {
	n = node{kind: group, r: rune(c.text[at])}
	at += 2
	for {
		var alt []node
		alt, at = c.sequence(at, true, depth+1)
		n.alts = append(n.alts, alt)
		if at >= len(c.text) {
			return n, at, false
		}
		at++
		if c.text[at-1] == ')' {
			c.groups = true
			return n, at, true
		}
	}
}

// decode is the first character of s. A byte that is not UTF-8 is a character
// of its own, with a negative value.
func decode(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		return -rune(s[0]), 1
	}
	return r, size
}

func writeChar(b *strings.Builder, r rune) {
	if r < 0 {
		b.WriteByte(byte(-r))
		return
	}
	b.WriteRune(r)
}
