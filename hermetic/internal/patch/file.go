package patch

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"egressd/hermetic/internal/diff"
)

// filePatch is what a patch has for one file.
type filePatch struct {
	names    [3]string // after ---, after +++, after Index:
	none     [2]bool   // the old or the new file is said not to exist
	git      bool
	from, to string // renamed or copied
	copied   bool
	mode     uint32 // new mode that git says; 0: none
	oldMode  uint32
	header   []string
	line     int // of the first hunk, in the input
	hunks    []*patchHunk
	plain    bool // normal format: no names
	stripped bool // CRs were taken off
}

// patchHunk is one place. Its lines are of op ' ', '-' or '+'.
type patchHunk struct {
	old, oldLen, new, newLen int
	lines                    []patchLine
	tail                     string // after the second @@
}

type patchLine struct {
	op   byte
	text []byte // with its newline, unless the file ends there without
}

// patchReader goes through a patch line by line.
type patchReader struct {
	lines [][]byte
	at    int
	crlf  bool
}

var unifiedHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$`) })

var contextHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\*\*\* (\d+)(?:,(\d+))? \*\*\*\*`) })

var normalHead = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?$`) })

func (r *patchReader) peek(ahead int) string {
	if r.at+ahead >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(string(r.lines[r.at+ahead]), "\r\n")
}

// next reads the patch of one file; nil at the end.
func (r *patchReader) next() (*filePatch, error) {
	p := &filePatch{}
	first := r.at
	for r.at < len(r.lines) {
		line := r.peek(0)
		switch {
		case strings.HasPrefix(line, "diff --git ") && p.git && p.pure():
			return p.from2(r, first), nil // without hunks
		case strings.HasPrefix(line, "--- ") && strings.HasPrefix(r.peek(1), "+++ "):
			r.crlf = bytes.HasSuffix(r.lines[r.at], []byte("\r\n"))
			p.stripped = r.crlf
			p.name(0, line[4:])
			p.name(1, r.peek(1)[4:])
			r.at += 2
			continue
		case strings.HasPrefix(line, "*** ") && strings.HasPrefix(r.peek(1), "--- ") && strings.HasPrefix(r.peek(2), "***************"):
			p.name(0, line[4:])
			p.name(1, r.peek(1)[4:])
			r.at += 2
			continue
		case unifiedHead().MatchString(line):
			p.header, p.line = r.between(first), r.at+1
			return p, r.unified(p)
		case strings.HasPrefix(line, "***************") && contextHead().MatchString(r.peek(1)):
			p.header, p.line = r.between(first), r.at+1
			return p, r.contextual(p)
		case normalHead().MatchString(line) && !p.git:
			p.header, p.line, p.plain = r.between(first), r.at+1, true
			return p, r.normal(p)
		}
		p.extended(line)
		r.at++
	}
	if p.git && p.pure() {
		return p.from2(r, first), nil
	}
	return nil, nil
}

// pure reports whether git's header alone does something.
func (p *filePatch) pure() bool { return p.to != "" || p.mode != 0 || p.none[0] || p.none[1] }

func (p *filePatch) from2(r *patchReader, first int) *filePatch {
	p.header, p.line = r.between(first), r.at+1
	return p
}

func (r *patchReader) between(first int) (all []string) {
	for _, l := range r.lines[first:r.at] {
		all = append(all, strings.TrimRight(string(l), "\r\n"))
	}
	return all
}

// extended reads one line of a header.
func (p *filePatch) extended(line string) {
	cut := func(prefix string) (string, bool) { return strings.CutPrefix(line, prefix) }
	if s, ok := cut("diff --git "); ok {
		*p = filePatch{git: true}
		if a, b, ok := gitNames(s); ok {
			p.names[0], p.names[1] = a, b
		}
		return
	}
	if s, ok := cut("Index: "); ok {
		p.names[2] = strings.TrimSpace(s)
		return
	}
	if !p.git {
		return
	}
	octal := func(s string) uint32 {
		n, _ := strconv.ParseUint(s, 8, 32)
		return uint32(n)
	}
	for _, f := range []struct {
		prefix string
		set    func(s string)
	}{
		{"old mode ", func(s string) { p.oldMode = octal(s) }},
		{"new mode ", func(s string) { p.mode = octal(s) }},
		{"new file mode ", func(s string) { p.mode, p.none[0] = octal(s), true }},
		{"deleted file mode ", func(s string) { p.oldMode, p.none[1] = octal(s), true }},
		{"rename from ", func(s string) { p.from = unquote(s) }},
		{"rename to ", func(s string) { p.to = unquote(s) }},
		{"copy from ", func(s string) { p.from, p.copied = unquote(s), true }},
		{"copy to ", func(s string) { p.to, p.copied = unquote(s), true }},
	} {
		if s, ok := cut(f.prefix); ok {
			f.set(s)
		}
	}
}

// gitNames takes "a/x b/x" apart: both names are the same but for the first
// component, unless they are quoted.
func gitNames(s string) (a, b string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		end := strings.Index(s[1:], `" `)
		if end < 0 {
			return "", "", false
		}
		return unquote(s[:end+2]), unquote(s[end+3:]), true
	}
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		_, x, ok1 := strings.Cut(s[:i], "/")
		_, y, ok2 := strings.Cut(s[i+1:], "/")
		if ok1 && ok2 && x == y {
			return s[:i], s[i+1:], true
		}
	}
	return strings.Cut(s, " ")
}

func unquote(s string) string {
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

// name reads what follows --- or +++: a name, and perhaps a time.
func (p *filePatch) name(i int, s string) {
	name, stamp, tab := strings.Cut(s, "\t")
	if strings.HasPrefix(name, `"`) {
		name = unquote(name)
	} else if !tab {
		name, stamp, _ = strings.Cut(name, " ")
	}
	p.names[i] = name
	if t, err := time.Parse("2006-01-02 15:04:05.999999999 -0700", strings.TrimSpace(stamp)); err == nil && t.Unix() == 0 {
		p.none[i] = true
	}
	if name == "/dev/null" {
		p.none[i], p.names[i] = true, ""
	}
}

// malformed is patch's complaint about the line at hand.
func (r *patchReader) malformed() error {
	return diff.Trouble(fmt.Sprintf("malformed patch at line %d: %s\n", r.at+1, r.peek(0)))
}

func number(s string, none int) int {
	if s == "" {
		return none
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 1<<40 {
		return -1
	}
	return n
}

func (r *patchReader) unified(p *filePatch) error {
	for {
		m := unifiedHead().FindStringSubmatch(r.peek(0))
		if m == nil {
			return nil
		}
		h := &patchHunk{old: number(m[1], 0), oldLen: number(m[2], 1), new: number(m[3], 0), newLen: number(m[4], 1), tail: m[5]}
		if h.old < 0 || h.oldLen < 0 || h.new < 0 || h.newLen < 0 {
			return r.malformed()
		}
		r.at++
		for olds, news := h.oldLen, h.newLen; olds > 0 || news > 0; r.at++ {
			if r.at >= len(r.lines) {
				return r.malformed()
			}
			l := patchLine{' ', r.text()}
			if len(l.text) > 0 && l.text[0] != '\n' {
				l.op, l.text = l.text[0], l.text[1:]
			}
			switch l.op {
			case ' ', '\t':
				olds, news = olds-1, news-1
				l.op = ' '
			case '-':
				olds--
			case '+':
				news--
			case '\\':
				h.unend()
				continue
			default:
				return r.malformed()
			}
			if olds < 0 || news < 0 {
				return r.malformed()
			}
			h.lines = append(h.lines, l)
		}
		if strings.HasPrefix(r.peek(0), `\`) {
			h.unend()
			r.at++
		}
		p.hunks = append(p.hunks, h)
	}
}

// text is the line at hand, without the CR that the whole patch has.
func (r *patchReader) text() []byte {
	l := r.lines[r.at]
	if r.crlf && bytes.HasSuffix(l, []byte("\r\n")) {
		l = append(l[:len(l)-2:len(l)-2], '\n')
	}
	if !diff.Complete(l) {
		l = append(l[:len(l):len(l)], '\n')
	}
	return l
}

// unend takes the newline off the last line.
func (h *patchHunk) unend() {
	if n := len(h.lines); n > 0 {
		h.lines[n-1].text = bytes.TrimSuffix(h.lines[n-1].text, []byte{'\n'})
	}
}
