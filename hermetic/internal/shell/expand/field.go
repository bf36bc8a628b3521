package expand

import (
	"strings"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/state"
)

// field is one word that an expansion produces, and which of its bytes were
// quoted.
type field struct {
	text   strings.Builder
	quoted []bool // nil: none so far
	glob   bool   // it has a special character that is not quoted
	there  bool   // it is a field even if it is empty
}

// add appends text.
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

// pattern is the field with a backslash before each special character that was
// quoted.
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

// expansion expands one word to fields.
type expansion struct {
	sh      *state.Shell
	done    []field
	cur     field
	split   bool // at IFS; each element of $@ is a field
	ifs     string
	closed  bool // whitespace ended the last field, and nothing has come since
	assign  bool // expand tildes also after colons
	inQuote bool
	bytes   int
}

// flush ends the current field.
func (e *expansion) flush() {
	e.done = append(e.done, e.cur)
	e.cur = field{}
	e.sh.CheckGlobs(len(e.done) - 1) // without the command's name
}

// add appends text to the current field as it is.
func (e *expansion) add(s string, quoted bool) {
	if s == "" && !quoted {
		return
	}
	e.bytes += len(s)
	e.sh.CheckLen(e.bytes)
	e.cur.add(s, quoted)
	e.cur.there, e.closed = true, false
}

// value appends the result of an expansion. It is split if it is not quoted.
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

// list appends several values, each as a field of its own if fields are split.
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

// starSeparator is what joins "$*".
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

// IFS is the characters that fields are split at.
func IFS(sh *state.Shell) string {
	v := sh.Vars.Lookup("IFS")
	if v == nil || !v.IsSet {
		return " \t\n"
	}
	return v.Str
}
