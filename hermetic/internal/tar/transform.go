package tar

import (
	"strings"

	"egressd/hermetic/internal/regex"
)

// transform is s/regexp/replacement/flags of --transform.
type transform struct {
	re     *regex.Regexp
	with   string
	global bool
}

func (t *archiver) setTransform(s string) bool {
	bad := func() bool { return t.usage("Invalid transform expression") }
	if len(s) < 4 || s[0] != 's' {
		return bad()
	}
	var parts []string
	for rest := s[2:]; len(parts) < 2; {
		i := 0
		for i < len(rest) && rest[i] != s[1] {
			if rest[i] == '\\' {
				i++
			}
			i++
		}
		if i >= len(rest) {
			return bad()
		}
		parts = append(parts, strings.ReplaceAll(rest[:i], "\\"+s[1:2], s[1:2]))
		if rest = rest[i+1:]; len(parts) == 2 {
			parts = append(parts, rest)
		}
	}
	tr, o := &transform{with: parts[1]}, regex.Options{Syntax: regex.SedBasic, Steps: t.Budget.Steps}
	for _, f := range parts[2] {
		switch f {
		case 'g':
			tr.global = true
		case 'i':
			o.Fold = true
		case 'x':
			o.Syntax = regex.SedExtended
		case 'r', 'R', 's', 'S', 'h', 'H': // what it applies to: everything
		default:
			return bad()
		}
	}
	re, err := regex.Compile(parts[0], o)
	if err != nil {
		return t.usage("Invalid transform expression: %s", err)
	}
	tr.re = re
	t.transforms = append(t.transforms, tr)
	return true
}

func (t *archiver) transformed(name string) string {
	for _, tr := range t.transforms {
		name = tr.apply(name)
	}
	return name
}

func (tr *transform) apply(name string) string {
	var b strings.Builder
	text, at := []byte(name), 0
	for at <= len(text) {
		m, err := tr.re.Find(text, at, 0)
		if err != nil || m == nil {
			break
		}
		b.Write(text[at:m[0]])
		tr.expand(&b, text, m)
		if at = m[1]; m[0] == m[1] {
			if at < len(text) {
				b.WriteByte(text[at])
			}
			at++
		}
		if !tr.global {
			break
		}
	}
	if at < len(text) {
		b.Write(text[at:])
	}
	return b.String()
}

func (tr *transform) expand(b *strings.Builder, text []byte, m []int) {
	group := func(n int) {
		if 2*n+1 < len(m) && m[2*n] >= 0 {
			b.Write(text[m[2*n]:m[2*n+1]])
		}
	}
	for i := 0; i < len(tr.with); i++ {
		switch c := tr.with[i]; {
		case c == '&':
			group(0)
		case c == '\\' && i+1 < len(tr.with):
			i++
			if d := tr.with[i]; d >= '0' && d <= '9' {
				group(int(d - '0'))
			} else {
				b.WriteByte(d)
			}
		default:
			b.WriteByte(c)
		}
	}
}
