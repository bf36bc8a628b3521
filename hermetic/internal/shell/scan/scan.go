// Package scan reads shell scripts with mvdan.cc/sh/v3/syntax: it looks at the
// depth of a text before the parser does, writes anew what that parser cannot
// read and bash can, and tells mistakes in bash's words.
package scan

import (
	"errors"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Script is a parsed text, up to its first mistake.
type Script struct {
	Text     string           // the text, possibly rewritten; positions are in it
	Lines    [][]*syntax.Stmt // statements that bash reads together
	Warnings []Warning
	Mistake  *Mistake // nil if there is none
	Deep     bool     // the text is nested too deeply; nothing of it was kept
}

// Warning is a message of bash about a text that it runs nevertheless.
type Warning struct {
	Line int
	Text string
}

// maxRewrites bounds how often one text is rewritten.
const maxRewrites = 100

// Parse parses a script whose syntax is nested at most about levels deep. It
// does not fail: the result has what could be parsed, and the Mistake.
func Parse(text string, levels int) *Script {
	s := &Script{}
	bytes := !utf8.ValidString(text)
	if bytes {
		text = hideBytes(text)
	}
	original := text
	var firstErr error
	for range maxRewrites {
		g := guarded(text, levels)
		f, err := parser().Parse(g, "")
		if g.deep {
			return &Script{Deep: true}
		}
		if err == nil {
			if bytes {
				showBytes(f)
			}
			s.Text, s.Lines = text, group(f.Stmts)
			return s
		}
		if firstErr == nil {
			firstErr = err
		}
		next, warning, ok := rewrite(text, err)
		if !ok {
			break
		}
		if warning != nil {
			s.Warnings = append(s.Warnings, *warning)
			firstErr, original = nil, next
		}
		text = next
	}
	if firstErr == nil {
		_, firstErr = parser().Parse(guarded(original, levels), "")
	}
	s.before(text, original, levels, firstErr, bytes)
	return s
}

// before keeps the statements on the lines before a mistake.
func (s *Script) before(text, original string, levels int, err error, bytes bool) {
	done, last := statements(text, levels)
	if last == nil {
		text = original
		done, _ = statements(text, levels)
	}
	s.Text = text
	lines := group(done)
	at, _ := where(err)
	if n := len(lines); n > 0 {
		end := lines[n-1][len(lines[n-1])-1].End().Offset()
		if end <= uint(len(text)) && !strings.Contains(between(text, end, at), "\n") {
			lines = lines[:n-1]
		}
	}
	if bytes {
		for _, l := range lines {
			for _, st := range l {
				showBytes(st)
			}
		}
	}
	s.Lines = lines
	s.Mistake = mistake(original, err)
}

// statements parses up to a mistake.
func statements(text string, levels int) (done []*syntax.Stmt, err error) {
	for st, err := range parser().StmtsSeq(guarded(text, levels)) {
		if err != nil {
			return done, err
		}
		done = append(done, st)
	}
	return done, nil
}

func between(text string, from, to uint) string {
	if to > uint(len(text)) {
		to = uint(len(text))
	}
	if from >= to {
		return ""
	}
	return text[from:to]
}

func parser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// group groups the statements that bash reads at once: those with no newline
// between them.
func group(stmts []*syntax.Stmt) [][]*syntax.Stmt {
	var lines [][]*syntax.Stmt
	for i, st := range stmts {
		if i > 0 {
			prev := stmts[i-1]
			if prev.End().Line() == st.Pos().Line() || heredocLine(prev) == st.Pos().Line() {
				n := len(lines) - 1
				lines[n] = append(lines[n], st)
				continue
			}
		}
		lines = append(lines, []*syntax.Stmt{st})
	}
	return lines
}

// heredocLine is the line of the last << of a statement. What follows on that
// line is read together with it.
func heredocLine(st *syntax.Stmt) uint {
	var line uint
	for _, r := range st.Redirs {
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			line = r.OpPos.Line()
		}
	}
	return line
}

// TextOf is the text of statements that were read together.
func (s *Script) TextOf(group []*syntax.Stmt) string {
	from, to := group[0].Pos().Offset(), group[len(group)-1].End().Offset()
	if to > uint(len(s.Text)) || from > to {
		return ""
	}
	return s.Text[from:to]
}

// Word parses text as one word; nil if it is not one.
func Word(text string, levels int) *syntax.Word {
	bytes := !utf8.ValidString(text)
	if bytes {
		text = hideBytes(text)
	}
	f, err := parser().Parse(guarded(": "+text, levels), "")
	if err != nil || len(f.Stmts) != 1 || len(f.Stmts[0].Redirs) > 0 {
		return nil
	}
	c, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) != 2 || len(c.Assigns) > 0 {
		return nil
	}
	if bytes {
		showBytes(c)
	}
	return c.Args[1]
}

// where is the position of an error of the parser.
func where(err error) (offset, line uint) {
	var p syntax.ParseError
	if errors.As(err, &p) {
		return p.Pos.Offset(), p.Pos.Line()
	}
	var l syntax.LangError
	if errors.As(err, &l) {
		return l.Pos.Offset(), l.Pos.Line()
	}
	return 0, 1
}

// Bytes that are not UTF-8 are characters of a private area while the parser,
// which refuses them, has the text.
const hidden = 0x10ff00

func hideBytes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteRune(hidden + rune(s[i]))
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

func showText(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= hidden+0x80 && r <= hidden+0xff {
			b.WriteByte(byte(r - hidden))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func showBytes(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			n.Value = showText(n.Value)
		case *syntax.SglQuoted:
			n.Value = showText(n.Value)
		}
		return true
	})
}
