package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	// minEncoded is the length of the shortest encoded text that is looked for: shorter
	// ones are everywhere.
	minEncoded = 8
	// minValue is the shortest value that is looked for in encoded forms.
	minValue = 4
	// minLine is the shortest line of a value with lines that is a secret by itself.
	minLine = 20
	// maxGap is how many bytes may stand between two of an encoded text that is broken
	// into lines.
	maxGap = 80
)

// add adds the forms of a secret.
func (r *Redactor) add(secret int, value string) {
	r.escaped(secret, value)
	if len(value) < minValue {
		return
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine && line != value && !strings.HasPrefix(line, "-----") {
			r.variants(secret, line)
			r.escaped(secret, line)
		}
	}
	r.variants(secret, value)
}

// variants adds the forms of a value that are encoded as a whole.
func (r *Redactor) variants(secret int, value string) {
	reversed := []byte(value)
	slices.Reverse(reversed)
	r.escaped(secret, string(reversed))
	lower := hex.EncodeToString([]byte(value))
	whole := []string{
		value, utf16Text(value), base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
		lower, strings.ToUpper(lower),
	}
	for _, v := range whole {
		r.blocks(secret, v, base64.RawStdEncoding.EncodeToString, 3, 6, base64Class)
		r.blocks(secret, v, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString, 5, 5, base32Class)
		r.blocks(secret, v, func(b []byte) string { return hex.EncodeToString(b) }, 1, 4, hexClass)
	}
	for _, list := range []struct {
		write  func(b byte) string
		joined string
	}{
		{func(b byte) string { return strconv.Itoa(int(b)) }, ","},
		{func(b byte) string { return strconv.Itoa(int(b)) }, " "},
		{func(b byte) string { return "0x" + hex.EncodeToString([]byte{b}) }, ","},
	} {
		parts := make([]string, len(value))
		for i := range len(value) {
			parts[i] = list.write(value[i])
		}
		r.text(secret, strings.Join(parts, list.joined), 0, 0, listClass)
	}
}

func utf16Text(s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// class says how the bytes of an encoded text compare: to what each is folded, 0: it
// belongs to no text of the class, or may stand between two that do.
type class struct {
	fold [256]byte
	gap  [256]bool
}

func newClass(alphabet, gaps string, fold func(b byte) byte) *class {
	c := new(class)
	for i := range len(alphabet) {
		c.fold[alphabet[i]] = fold(alphabet[i])
	}
	for i := range len(gaps) {
		c.gap[gaps[i]] = true
	}
	return c
}

const (
	digits = "0123456789"
	small  = "abcdefghijklmnopqrstuvwxyz"
	large  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	space  = " \t\r\n"
)

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func base64Class() *class {
	return newClass(digits+small+large+"+/-_", space+"\\\x00\"'", func(b byte) byte {
		switch b {
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return b
	})
}

func base32Class() *class { return newClass(digits+small+large, space+"\x00", lowerByte) }

// Gaps also take \x41, %41, &#x41; and xxd apart.
func hexClass() *class {
	return newClass(digits+"abcdefABCDEF", space+":-,;%\\xX&#\x00", lowerByte)
}

func listClass() *class { return newClass(digits+", xabcdefABCDEF", "\t\r\n ", lowerByte) }

// blocks adds a value in an encoding that takes bits of the bytes beside it: once for
// each offset that it may have. Only the characters that are the value's alone are
// compared; those that it shares with a neighbour go with them.
func (r *Redactor) blocks(secret int, value string, encode func([]byte) string, offsets, bits int, of func() *class) {
	c := of()
	for offset := range offsets {
		text := encode([]byte(strings.Repeat("\x00", offset) + value))
		first := (offset*8 + bits - 1) / bits
		last := (offset + len(value)) * 8 / bits
		before, after := 0, 0
		if offset*8%bits != 0 {
			before = 1
		}
		if (offset+len(value))*8%bits != 0 {
			after = 1
		}
		r.class(secret, text[first:last], before, after, c)
	}
}

func (r *Redactor) text(secret int, text string, before, after int, of func() *class) {
	r.class(secret, text, before, after, of())
}

// class adds a text whose bytes compare as those of a class do. before and after are
// how many characters of the class beside it belong to it as well.
func (r *Redactor) class(secret int, text string, before, after int, c *class) {
	if len(text) < minEncoded {
		return
	}
	want := make([]byte, len(text))
	for i := range len(text) {
		want[i] = c.fold[text[i]]
	}
	match := func(data []byte, at int) (from, to int) {
		i := at
		for _, w := range want {
			for gap := 0; i < len(data) && c.fold[data[i]] != w; gap++ {
				if i == at || gap == maxGap || !c.gap[data[i]] {
					return 0, 0
				}
				i++
			}
			if i == len(data) {
				return 0, 0
			}
			i++
		}
		from = at
		for n := before; n > 0 && from > 0 && c.fold[data[from-1]] != 0; n-- {
			from--
		}
		for n := after; n > 0 && i < len(data) && c.fold[data[i]] != 0; n-- {
			i++
		}
		return from, i
	}
	for b, folded := range c.fold {
		if folded != 0 && folded == want[0] {
			r.starts[b] = append(r.starts[b], form{secret, match})
		}
	}
}
