package expand

import (
	"strings"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/state"
)

// field is one word that an expansion makes, and which bytes of it a quote took
// the meaning from.
type field struct {
	text   strings.Builder
	quoted []bool // nil: none so far
	glob   bool   // a special character was not quoted
	there  bool   // it is a field even when it is empty
}

func (f *field) add(s string, quoted bool) {
	if quoted && f.quoted == nil {
		f.quoted = make([]bool, f.text.Len(), f.text.Len()+len(s))
	}
	if f.quoted != nil {
		for range len(s) {
			f.quoted = append(f.quoted, quoted)
		}
	}
	if !quoted && !f.glob && strings.ContainsAny(s, `*?[(\`) {
		f.glob = true
	}
	f.text.WriteString(s)
}

// pattern is the field with a backslash before what was quoted.
func (f *field) pattern() string {
	s := f.text.String()
	if f.quoted == nil {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if f.quoted[i] && strings.IndexByte(`\*?[]()|+@!-^/.`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// expansion is one word on its way to fields.
type expansion struct {
	sh      *state.Shell
	done    []field
	cur     field
	split   bool // split at IFS, and give $@ a field each
	ifs     string
	closed  bool // whitespace ended the last field, nothing came since
	assign  bool // tildes after : too
	inQuote bool
	bytes   int
}

func (e *expansion) flush() {
	e.done = append(e.done, e.cur)
	e.cur = field{}
	e.sh.CheckGlobs(len(e.done) - 1) // without the command's name
}

// add puts text into the field at hand as it is.
func (e *expansion) add(s string, quoted bool) {
	if s == "" && !quoted {
		return
	}
	e.bytes += len(s)
	e.sh.CheckLen(e.bytes)
	e.cur.add(s, quoted)
	e.cur.there, e.closed = true, false
}

// value puts the result of an expansion in, and splits it when it is not
// quoted.
func (e *expansion) value(s string, quoted bool) {
	if quoted || !e.split {
		e.add(s, quoted)
		return
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(e.ifs, s[i]) < 0 {
			continue
		}
		e.add(s[start:i], false)
		start = i + 1
		white := s[i] == ' ' || s[i] == '\t' || s[i] == '\n'
		switch {
		case e.cur.there:
			e.flush()
			e.closed = white
		case !white && e.closed:
			e.closed = false
		case !white:
			e.flush()
		}
	}
	e.add(s[start:], false)
}

// list puts several values in: a field each where fields are split.
func (e *expansion) list(vals []string, star, quoted bool) {
	if star && (quoted || !e.split) || !e.split {
		sep := " "
		if star {
			sep = starSeparator(e.sh)
		}
		if quoted || len(vals) > 0 {
			e.add(strings.Join(vals, sep), quoted)
		}
		return
	}
	for i, v := range vals {
		if i > 0 {
			if quoted || e.cur.there {
				e.flush()
			}
			e.closed = true
		}
		if quoted {
			e.add(v, true)
			continue
		}
		e.value(v, false)
	}
}

// starSeparator joins "$*".
func starSeparator(sh *state.Shell) string {
	v := sh.Vars.Lookup("IFS")
	if v == nil || !v.IsSet {
		return " "
	}
	if v.Str == "" {
		return ""
	}
	return chars.Head(v.Str)
}

// IFS is the characters that words are split at.
func IFS(sh *state.Shell) string {
	v := sh.Vars.Lookup("IFS")
	if v == nil || !v.IsSet {
		return " \t\n"
	}
	return v.Str
}
