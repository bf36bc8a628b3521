package regex

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fast is what answers without going back: a search for a literal text, or
// RE2. Where the expression says what RE2 cannot, it is looser than the
// expression: no match of it is none at all, and its begin is a lower bound.
type fast struct {
	literal []byte // the whole expression; nil: it is more
	need    []byte // in every match
	re      *regexp.Regexp
	exact   bool
	places  bool // depends on what is around the text
	begins  bool // ... before it
	size    int
}

// Bounds of what RE2, which nothing can stop, is given: instructions, and
// those times bytes of text.
const (
	fastSize = 20_000
	fastWork = 1 << 28
)

func newFast(root *node, o Options) *fast {
	f := &fast{exact: true, size: size(root)}
	if lit, ok := literal(root, o.Bytes); ok {
		f.literal = lit
		return f
	}
	f.need = required(root, o.Bytes)
	if f.size > fastSize {
		return f
	}
	t := translator{f: f, opts: o}
	t.node(root, 1)
	re, err := regexp.Compile(t.String())
	if err != nil {
		return f
	}
	if o.Syntax != Perl {
		re.Longest()
	}
	f.re = re
	return f
}

// find answers as far as it can. Not exact: loc, when there is one, begins
// where the earliest match may.
func (f *fast) find(re *Regexp, text []byte, at int, flags Flags, groups bool) (loc []int, exact bool, err error) {
	rest := text[at:]
	if f.literal != nil {
		i := bytes.Index(rest, f.literal)
		if i < 0 {
			return nil, true, cmp.Or(re.step(int64(len(rest))/1024+1), errNone)
		}
		return shift(whole(i, i+len(f.literal), re.groups), at), true, re.step(int64(i)/1024 + 1)
	}
	if len(f.need) > 0 && !bytes.Contains(rest, f.need) {
		return nil, true, cmp.Or(re.step(int64(len(rest))/1024+1), errNone)
	}
	if err := re.step(1); err != nil {
		return nil, true, err
	}
	if f.re == nil || re.opts.Bytes && !isASCII(rest) || f.size*len(rest) > fastWork {
		return nil, false, nil
	}
	if f.begins && at > 0 || f.places && flags != 0 {
		return nil, false, nil
	}
	groups = groups && f.exact && !re.ambiguous && re.groups > 0
	if loc, err = f.search(re, rest, groups); err != nil {
		return nil, true, err
	}
	if loc != nil && !groups && re.groups > 0 {
		loc = whole(loc[0], loc[1], re.groups)
	}
	switch {
	case loc == nil:
		return nil, true, errNone
	case !f.exact || !utf8.Valid(rest[loc[0]:loc[1]]): // to RE2 such a byte is a character
		return shift(loc, at), false, nil
	}
	return shift(loc, at), true, nil
}

// longText is from how many bytes on a text is handed to RE2 piece by piece: to
// know how far it looked, and to stop it.
const longText = 64 << 10

// search has RE2 look. The steps are of what it looked at: a long line with a
// match at every turn is not paid for at each of them.
func (f *fast) search(re *Regexp, rest []byte, groups bool) (loc []int, err error) {
	if len(rest) >= longText {
		r := &reader{text: rest, size: int64(f.size), step: re.step}
		if groups {
			loc = f.re.FindReaderSubmatchIndex(r)
		} else {
			loc = f.re.FindReaderIndex(r)
		}
		return loc, r.err
	}
	if err := re.step(int64(len(rest)) * int64(f.size) / 1024); err != nil {
		return nil, err
	}
	if groups {
		return f.re.FindSubmatchIndex(rest), nil
	}
	return f.re.FindIndex(rest), nil
}

// reader gives RE2 a text, and counts what it takes.
type reader struct {
	text []byte
	at   int
	size int64 // steps for 1024 bytes
	step func(int64) error
	err  error
}

// ReadRune implements io.RuneReader.
func (r *reader) ReadRune() (c rune, n int, err error) {
	if r.at == len(r.text) || r.err != nil {
		return 0, 0, io.EOF
	}
	c, n = rune(r.text[r.at]), 1
	if c >= utf8.RuneSelf {
		c, n = utf8.DecodeRune(r.text[r.at:])
	}
	if before := r.at; before>>10 != (before+n)>>10 {
		r.err = r.step(r.size)
	}
	r.at += n
	return c, n, nil
}

func whole(from, to, groups int) []int {
	loc := make([]int, 2*(groups+1))
	for i := range loc {
		loc[i] = -1
	}
	loc[0], loc[1] = from, to
	return loc
}

func shift(loc []int, by int) []int {
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += by
		}
	}
	return loc
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// literal is n as a text, when it is nothing but one.
func literal(n *node, single bool) ([]byte, bool) {
	switch n.op {
	case opEmpty:
		return []byte{}, true
	case opRune:
		return appendRune(nil, n.r, single)
	case opCat:
		out := []byte{}
		for _, s := range n.subs {
			b, ok := literal(s, single)
			if !ok {
				return nil, false
			}
			out = append(out, b...)
		}
		return out, true
	}
	return nil, false
}

func appendRune(b []byte, r rune, single bool) ([]byte, bool) {
	switch {
	case single && r < 256:
		return append(b, byte(r)), true
	case r < invalid:
		return utf8.AppendRune(b, r), true
	}
	return nil, false
}

// required is a text that every match of n holds: the longest that is seen.
func required(n *node, single bool) []byte {
	var best, run []byte
	var walk func(n *node)
	walk = func(n *node) {
		switch {
		case n.op == opRune:
			if b, ok := appendRune(run, n.r, single); ok {
				run = b
				return
			}
		case n.op == opCat:
			for _, s := range n.subs {
				walk(s)
			}
			return
		case n.op == opGroup || n.op == opAtomic:
			walk(n.subs[0])
			return
		case n.op == opEmpty:
			return
		case n.op == opAssert:
			return
		}
		if len(run) > len(best) {
			best = run
		}
		run = nil
		if n.op == opRepeat && n.min > 0 {
			walk(n.subs[0])
			if len(run) > len(best) {
				best = run
			}
			run = nil
		}
	}
	walk(n)
	if len(run) > len(best) {
		best = run
	}
	return best
}

// translator writes a tree in RE2's syntax.
type translator struct {
	strings.Builder
	f    *fast
	opts Options
}

func (t *translator) node(n *node, times int) {
	switch n.op {
	case opNever:
		t.WriteString(`[^\x00-\x{10FFFF}]`)
	case opRune:
		if n.r >= invalid {
			t.f.exact = false
		}
		t.rune(min(n.r, utf8.MaxRune))
	case opSet:
		t.set(n.set)
	case opCat, opAlt:
		t.WriteString("(?:")
		for i, s := range n.subs {
			if n.op == opAlt && i > 0 {
				t.WriteByte('|')
			}
			t.node(s, times)
		}
		t.WriteByte(')')
	case opGroup:
		t.WriteByte('(')
		t.node(n.subs[0], times)
		t.WriteByte(')')
	case opRepeat:
		t.repeat(n, times)
	case opBack:
		t.f.exact = false
		t.WriteString(`(?s:.*)`)
	case opAssert:
		t.assert(assertion(n.n))
	case opLook, opKeep:
		t.f.exact = false
	case opAtomic:
		t.f.exact = false
		t.WriteString("(?:")
		t.node(n.subs[0], times)
		t.WriteByte(')')
	}
}

// rune writes one character; one that stands for a byte that is not UTF-8 is
// what RE2 takes it for.
func (t *translator) rune(r rune) {
	if r >= utf8.MaxRune {
		r = utf8.RuneError
	}
	t.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
}

func (t *translator) set(s *set) {
	if len(s.ranges) == 0 {
		t.WriteString(`[^\x00-\x{10FFFF}]`)
		return
	}
	t.WriteByte('[')
	for i := 0; i < len(s.ranges); i += 2 {
		lo, hi := s.ranges[i], s.ranges[i+1]
		if hi >= invalid {
			t.f.exact = false
			t.rune(utf8.RuneError)
			if lo >= invalid {
				continue
			}
		}
		t.WriteString(`\x{` + strconv.FormatInt(int64(lo), 16) + `}-\x{` + strconv.FormatInt(int64(min(hi, utf8.MaxRune)), 16) + `}`)
	}
	t.WriteByte(']')
}

func (t *translator) repeat(n *node, times int) {
	const most = 1000 // RE2's, nested ones multiplied
	t.WriteString("(?:")
	t.node(n.subs[0], times*max(n.min, n.max, 1))
	t.WriteByte(')')
	switch {
	case n.min == 0 && n.max < 0:
		t.WriteByte('*')
	case n.min == 1 && n.max < 0:
		t.WriteByte('+')
	case n.min == 0 && n.max == 1:
		t.WriteByte('?')
	case times*max(n.min, n.max) > most || n.max == 0:
		t.f.exact = t.f.exact && n.max == 0
		switch {
		case n.max == 0:
			t.WriteString("{0}")
		case n.min > 0:
			t.WriteByte('+')
		default:
			t.WriteByte('*')
		}
	default:
		t.WriteString("{" + strconv.Itoa(n.min))
		if n.max != n.min {
			t.WriteByte(',')
			if n.max >= 0 {
				t.WriteString(strconv.Itoa(n.max))
			}
		}
		t.WriteByte('}')
	}
	if n.lazy {
		t.WriteByte('?')
	}
}

func (t *translator) assert(a assertion) {
	t.f.places = true
	switch {
	case a == lineStart && t.opts.Lines:
		t.f.begins = true
		t.WriteString("(?m:^)")
	case a == lineStart, a == textStart:
		t.f.begins = true
		t.WriteString(`\A`)
	case a == lineEnd && t.opts.Lines:
		t.WriteString("(?m:$)")
	case a == lineEnd, a == textEnd:
		t.WriteString(`\z`)
	default: // words, which are ASCII's in RE2
		t.f.exact = false
	}
}
