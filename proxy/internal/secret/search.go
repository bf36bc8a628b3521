package secret

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// Implementation constants, in bytes.
const (
	minPlain   = 4 // a value that is shorter is not looked for: it would be found everywhere
	minEncoded = 8 // of the part of a base64 text that does not depend on its surroundings
)

// search finds texts, each in the spellings that it commonly travels in: as it is,
// in base64 at any offset, percent-encoded, escaped in JSON.
type search struct {
	spelled []spelling
	longest int // of the spellings, in bytes
}

// spelling is one of the forms of a text.
type spelling struct {
	text    []byte
	env     string // what the text belongs to
	replace []byte // as long as text
}

// add adds the spellings of text, which belongs to env. Plain text is replaced by
// stand if that is as long, and everything else by asterisks.
func (s *search) add(text, env, stand string) {
	if len(text) < minPlain {
		return
	}
	replace := []byte(stand)
	if len(stand) != len(text) {
		replace = nil
	}
	s.spell(text, env, replace)
	s.spell(url.QueryEscape(text), env, nil)
	s.spell(url.PathEscape(text), env, nil)
	s.spell(escapeJSON(text), env, nil)
	s.spell(strings.ReplaceAll(escapeJSON(text), "/", `\/`), env, nil)
	for offset := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if part := inBase64(enc, text, offset); len(part) >= minEncoded {
				s.spell(part, env, nil)
			}
		}
	}
}

func (s *search) spell(text, env string, replace []byte) {
	if slices.ContainsFunc(s.spelled, func(sp spelling) bool { return string(sp.text) == text }) {
		return
	}
	if replace == nil {
		replace = bytes.Repeat([]byte("*"), len(text))
	}
	s.spelled = append(s.spelled, spelling{[]byte(text), env, replace})
	s.longest = max(s.longest, len(text))
}

// inBase64 is the part of text in base64 that is the same whatever stands around
// it, if offset bytes of a group of three stand before it.
func inBase64(enc *base64.Encoding, text string, offset int) string {
	skip := (3 - offset) % 3
	whole := (len(text) - skip) / 3 * 3
	if whole <= 0 {
		return ""
	}
	return enc.EncodeToString([]byte(text[skip : skip+whole]))
}

// escapeJSON is text inside a JSON string, the way most writers do it.
func escapeJSON(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(text)
}

// all reports whose texts stand in t, each once.
func (s *search) all(t string) (envs []string) {
	for _, sp := range s.spelled {
		if strings.Contains(t, string(sp.text)) && !slices.Contains(envs, sp.env) {
			envs = append(envs, sp.env)
		}
	}
	return envs
}

// first reports whose text stands in b; "": nobody's.
func (s *search) first(b []byte) string {
	for i := range s.spelled {
		if bytes.Contains(b, s.spelled[i].text) {
			return s.spelled[i].env
		}
	}
	return ""
}

// mask replaces every text in b, in place.
func (s *search) mask(b []byte) {
	for i := range s.spelled {
		sp := &s.spelled[i]
		for rest := b; ; {
			at := bytes.Index(rest, sp.text)
			if at < 0 {
				break
			}
			copy(rest[at:], sp.replace)
			rest = rest[at+len(sp.text):]
		}
	}
}

// open reports how many bytes at the end of b may begin a text.
func (s *search) open(b []byte) int {
	for n := min(s.longest-1, len(b)); n > 0; n-- {
		end := b[len(b)-n:]
		for i := range s.spelled {
			if len(s.spelled[i].text) > n && bytes.HasPrefix(s.spelled[i].text, end) {
				return n
			}
		}
	}
	return 0
}
