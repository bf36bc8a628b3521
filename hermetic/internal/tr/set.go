package tr

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// trSet is a parsed STRING of tr.
type trSet struct {
	parts       []trPart
	class       string // the last class; "" without
	equivalence bool
	repeats     bool // has a [c*n]
	indefinite  bool // has a [c*]
	stars       int
}

type trPart struct {
	bytes []byte
	class string
	star  bool // as often as is wanted
}

// trByte is one byte of a STRING with its escapes undone.
type trByte struct {
	c       byte
	escaped bool
}

func unescapeTr(w *gnu.Work, s string) []trByte {
	var out []trByte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, trByte{s[i], false})
			continue
		}
		if i+1 == len(s) {
			w.Complain("warning: an unescaped backslash at end of string is not portable")
			out = append(out, trByte{'\\', false})
			break
		}
		i++
		if at := strings.IndexByte(`\abfnrtv`, s[i]); at >= 0 {
			out = append(out, trByte{"\\\a\b\f\n\r\t\v"[at], true})
			continue
		}
		if s[i] < '0' || s[i] > '7' {
			out = append(out, trByte{s[i], true})
			continue
		}
		n, from := 0, i
		for ; i < len(s) && i < from+3 && s[i] >= '0' && s[i] <= '7' && n*8+int(s[i]-'0') < 256; i++ {
			n = n*8 + int(s[i]-'0')
		}
		i--
		out = append(out, trByte{byte(n), true})
	}
	return out
}

func parseTrSet(w *gnu.Work, s string) (*trSet, error) {
	set := &trSet{}
	in := unescapeTr(w, s)
	for i := 0; i < len(in); {
		if in[i].c == '[' && !in[i].escaped {
			n, err := set.bracket(in[i:])
			if err != nil {
				return nil, err
			}
			if n > 0 {
				i += n
				continue
			}
		}
		if i+2 < len(in) && in[i+1].c == '-' && !in[i+1].escaped {
			lo, hi := in[i].c, in[i+2].c
			if hi < lo {
				return nil, fmt.Errorf("range-endpoints of '%s-%s' are in reverse collating sequence order", trShow(lo), trShow(hi))
			}
			p := trPart{}
			for c := int(lo); c <= int(hi); c++ {
				p.bytes = append(p.bytes, byte(c))
			}
			set.parts = append(set.parts, p)
			i += 3
			continue
		}
		set.parts = append(set.parts, trPart{bytes: []byte{in[i].c}})
		i++
	}
	return set, nil
}

func trShow(c byte) string {
	if c < 0x20 || c >= 0x7f {
		return fmt.Sprintf(`\%03o`, c)
	}
	return string(rune(c))
}

// bracket takes [:class:], [=c=] and [c*n] from the beginning of in; n is 0
// when it is none of them.
func (set *trSet) bracket(in []trByte) (n int, err error) {
	if len(in) < 2 {
		return 0, nil
	}
	if kind := in[1]; !kind.escaped && (kind.c == ':' || kind.c == '=') {
		for i := 2; i+1 < len(in); i++ {
			if in[i] == kind && in[i+1] == (trByte{']', false}) {
				if len(in) > 3 && i == 2 && set.starAt(in) > 0 {
					break
				}
				return i + 2, set.named(kind.c, in[2:i])
			}
		}
	}
	return set.star(in)
}

// starAt is where a [c*n] ends; 0: it is none.
func (set *trSet) starAt(in []trByte) int {
	if len(in) < 4 || in[2] != (trByte{'*', false}) {
		return 0
	}
	for i := 3; i < len(in) && !in[i].escaped; i++ {
		if in[i].c == ']' {
			return i
		}
		if in[i].c < '0' || in[i].c > '9' {
			break
		}
	}
	return 0
}

func (set *trSet) named(kind byte, text []trByte) error {
	var name []byte
	for _, b := range text {
		name = append(name, b.c)
	}
	if kind == '=' {
		if len(name) == 0 {
			return fmt.Errorf("missing equivalence class character '[==]'")
		}
		if len(name) != 1 {
			return fmt.Errorf("%s: equivalence class operand must be a single character", name)
		}
		set.equivalence = true
		set.parts = append(set.parts, trPart{bytes: name})
		return nil
	}
	if len(name) == 0 {
		return fmt.Errorf("missing character class name '[::]'")
	}
	member := trClass(string(name))
	if member == nil {
		return fmt.Errorf("invalid character class %s", gnu.Quote(string(name)))
	}
	set.class = string(name)
	if set.class != "upper" && set.class != "lower" {
		set.class = string(name)
	}
	p := trPart{class: string(name)}
	for c := range 128 {
		if member(byte(c)) {
			p.bytes = append(p.bytes, byte(c))
		}
	}
	set.parts = append(set.parts, p)
	return nil
}

func (set *trSet) star(in []trByte) (n int, err error) {
	end := set.starAt(in)
	if end == 0 {
		if len(in) > 3 && in[2] == (trByte{'*', false}) {
			return 0, set.badRepeat(in)
		}
		return 0, nil
	}
	var digits []byte
	for _, b := range in[3:end] {
		digits = append(digits, b.c)
	}
	set.repeats = true
	count := uint64(0)
	if len(digits) > 0 {
		base := 10
		if digits[0] == '0' {
			base = 8
		}
		count, err = strconv.ParseUint(string(digits), base, 62)
		if err != nil {
			return 0, fmt.Errorf("invalid repeat count %s in [c*n] construct", gnu.Quote(string(digits)))
		}
	}
	p := trPart{star: count == 0}
	if p.star {
		set.indefinite = true
		set.stars++
	}
	p.bytes = bytes.Repeat([]byte{in[1].c}, int(min(count, 256)))
	if p.star {
		p.bytes = []byte{in[1].c}
	}
	set.parts = append(set.parts, p)
	return end + 1, nil
}

func (set *trSet) badRepeat(in []trByte) error {
	var text []byte
	for _, b := range in[3:] {
		if b.c == ']' && !b.escaped {
			return fmt.Errorf("invalid repeat count %s in [c*n] construct", gnu.Quote(string(text)))
		}
		text = append(text, b.c)
	}
	return nil
}

// fill makes the [c*] as long as it takes for n bytes in all.
func (set *trSet) fill(n int) {
	rest := n
	for _, p := range set.parts {
		if !p.star {
			rest -= len(p.bytes)
		}
	}
	for i, p := range set.parts {
		if p.star {
			set.parts[i].bytes = bytes.Repeat(p.bytes[:1], max(0, rest))
		}
	}
}

func (set *trSet) expand() []byte {
	var out []byte
	for _, p := range set.parts {
		out = append(out, p.bytes...)
	}
	return out
}

func (set *trSet) endsInClass() bool {
	return len(set.parts) > 0 && set.parts[len(set.parts)-1].class != ""
}

func trClass(name string) func(byte) bool {
	in := func(lo, hi byte) func(byte) bool { return func(c byte) bool { return c >= lo && c <= hi } }
	digit, upper, lower, graph := in('0', '9'), in('A', 'Z'), in('a', 'z'), in(0x21, 0x7e)
	alpha := func(c byte) bool { return upper(c) || lower(c) }
	alnum := func(c byte) bool { return alpha(c) || digit(c) }
	return map[string]func(byte) bool{
		"alnum": alnum, "alpha": alpha, "digit": digit, "upper": upper, "lower": lower, "graph": graph,
		"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
		"cntrl":  func(c byte) bool { return c < 0x20 || c == 0x7f },
		"print":  func(c byte) bool { return graph(c) || c == ' ' },
		"punct":  func(c byte) bool { return graph(c) && !alnum(c) },
		"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
		"xdigit": func(c byte) bool { return digit(c) || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f' },
	}[name]
}
