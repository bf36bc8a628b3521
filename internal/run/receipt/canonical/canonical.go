// Package canonical is JSON in one form, so that it can be hashed and signed: RFC 8785
// as ECMAScript implementations have it.
//
//	hash, err := canonical.Hash(value)
//	v, err := canonical.Parse(text)
//	text, err := canonical.Encode(nil, v)
package canonical

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal writes v as canonical JSON: [Parse] of what encoding/json makes of it,
// written by [Encode].
func Marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	value, err := Parse(text.Bytes())
	if err != nil {
		return nil, err
	}
	return Encode(nil, value)
}

// Hash is the SHA-256 of canonical JSON, in lower-case hex. A value that has none
// is a fault of the caller's types, and an error.
func Hash(v any) (string, error) {
	text, err := Marshal(v)
	if err != nil {
		return "", err
	}
	return Sum(text), nil
}

// Sum is the SHA-256 of b, in lower-case hex.
func Sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// Encode appends a value from [Parse] in the canonical form of RFC 8785: members
// sorted by the UTF-16 code units of their names, numbers as ECMAScript writes them,
// no white space, and nothing escaped that need not be. Unlike RFC 8785 a surrogate
// that stands alone is written as an escape, which is what JSON.stringify does. NaN
// and infinities are errors.
func Encode(to []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(to, "null"...), nil
	case bool:
		return strconv.AppendBool(to, v), nil
	case float64:
		return appendNumber(to, v)
	case string:
		return appendString(to, v), nil
	case []any:
		to = append(to, '[')
		for i, item := range v {
			if i > 0 {
				to = append(to, ',')
			}
			var err error
			if to, err = Encode(to, item); err != nil {
				return nil, err
			}
		}
		return append(to, ']'), nil
	case Object:
		return appendObject(to, v)
	}
	return nil, fmt.Errorf("%T has no JSON", v)
}

func appendObject(to []byte, o Object) ([]byte, error) {
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(units(a), units(b)) })
	to = append(to, '{')
	for i, name := range names {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(appendString(to, name), ':')
		var err error
		if to, err = Encode(to, o[name]); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), nil
}

// units are the UTF-16 code units of a string from [Parse].
func units(s string) []uint16 {
	var out []uint16
	for len(s) > 0 {
		r, size := decodeRune(s)
		if r < surrogateSelf {
			out = append(out, uint16(r))
		} else {
			a, b := utf16.EncodeRune(r)
			out = append(out, uint16(a), uint16(b))
		}
		s = s[size:]
	}
	return out
}

const surrogateSelf = 0x10000

// decodeRune decodes the first character of a string in which a surrogate that
// stands alone is three bytes, as UTF-8 would have it if it had surrogates (WTF-8).
func decodeRune(s string) (rune, int) {
	if len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return utf8.DecodeRuneInString(s)
}

func appendString(to []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	to = append(to, '"')
	for len(s) > 0 {
		r, size := decodeRune(s)
		switch at := strings.IndexRune("\b\t\n\f\r\"\\", r); {
		case at >= 0:
			to = append(to, '\\', `btnfr"\`[at])
		case r < ' ':
			to = append(to, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		case utf16.IsSurrogate(r):
			to = append(to, fmt.Sprintf(`\u%04x`, r)...)
		default:
			to = append(to, s[:size]...)
		}
		s = s[size:]
	}
	return append(to, '"')
}

// appendNumber writes a number as ECMAScript's Number::toString does.
func appendNumber(to []byte, f float64) ([]byte, error) {
	switch size := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errors.New("a number is not finite")
	case size == 0:
		return append(to, '0'), nil // also -0
	case size >= 1e21 || size < 1e-6:
		text := strconv.FormatFloat(f, 'e', -1, 64)
		mantissa, exp, _ := strings.Cut(text, "e")
		sign, digits := exp[:1], strings.TrimLeft(exp[1:], "0")
		return append(to, mantissa+"e"+sign+digits...), nil
	}
	return strconv.AppendFloat(to, f, 'f', -1, 64), nil
}
