package date

import (
	"strings"
	"time"
)

// kind is what a token of a date is.
type kind int

const (
	end      kind = iota
	unsigned      // 12
	signed        // +12, -3
	udecimal      // 1.5
	sdecimal      // -1.5
	month         // value 1 to 12
	weekday       // value 0 to 6
	unit          // value and which
	ordinal       // next, last, third
	shift         // tomorrow, today: days
	ago           // value -1, or 1 for hence
	meridian      // value 0 am, 12 pm
	zone          // value: seconds east
	dst           // "dst"
	letterT       // T: between date and time, or a military zone
	char          // anything else, in text
)

type token struct {
	kind   kind
	value  int64
	nanos  int64 // after the point
	digits int   // of a number, without its sign
	which  byte  // of a unit: y m d h M s
	text   string
}

var months = map[string]int64{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6,
	"july": 7, "august": 8, "september": 9, "sept": 9, "october": 10, "november": 11, "december": 12,
}

var weekdays = map[string]int64{
	"sunday": 0, "monday": 1, "tuesday": 2, "tues": 2, "wednesday": 3, "wednes": 3,
	"thursday": 4, "thur": 4, "thurs": 4, "friday": 5, "saturday": 6,
}

var units = map[string]token{
	"year": {value: 1, which: 'y'}, "month": {value: 1, which: 'm'}, "fortnight": {value: 14, which: 'd'},
	"week": {value: 7, which: 'd'}, "day": {value: 1, which: 'd'}, "hour": {value: 1, which: 'h'},
	"minute": {value: 1, which: 'M'}, "min": {value: 1, which: 'M'}, "second": {value: 1, which: 's'}, "sec": {value: 1, which: 's'},
}

var relative = map[string]token{
	"tomorrow": {kind: shift, value: 1}, "yesterday": {kind: shift, value: -1}, "today": {kind: shift}, "now": {kind: shift},
	"last": {kind: ordinal, value: -1}, "this": {kind: ordinal, value: 0}, "next": {kind: ordinal, value: 1},
	"first": {kind: ordinal, value: 1}, "third": {kind: ordinal, value: 3}, "fourth": {kind: ordinal, value: 4},
	"fifth": {kind: ordinal, value: 5}, "sixth": {kind: ordinal, value: 6}, "seventh": {kind: ordinal, value: 7},
	"eighth": {kind: ordinal, value: 8}, "ninth": {kind: ordinal, value: 9}, "tenth": {kind: ordinal, value: 10},
	"eleventh": {kind: ordinal, value: 11}, "twelfth": {kind: ordinal, value: 12},
	"ago": {kind: ago, value: -1}, "hence": {kind: ago, value: 1},
	"am": {kind: meridian}, "pm": {kind: meridian, value: 12}, "dst": {kind: dst},
}

// zones are seconds east of Greenwich of the names that are known everywhere.
var zones = map[string]int64{
	"gmt": 0, "ut": 0, "utc": 0, "wet": 0, "west": 3600, "bst": 3600, "art": -3 * 3600, "brt": -3 * 3600, "brst": -2 * 3600,
	"nst": -12600, "ndt": -9000, "ast": -4 * 3600, "adt": -3 * 3600, "clt": -4 * 3600, "clst": -3 * 3600,
	"est": -5 * 3600, "edt": -4 * 3600, "cst": -6 * 3600, "cdt": -5 * 3600, "mst": -7 * 3600, "mdt": -6 * 3600,
	"pst": -8 * 3600, "pdt": -7 * 3600, "akst": -9 * 3600, "akdt": -8 * 3600, "hst": -10 * 3600, "hast": -10 * 3600,
	"hadt": -9 * 3600, "sst": -12 * 3600, "wat": 3600, "cet": 3600, "cest": 7200, "met": 3600, "mez": 3600, "mest": 7200,
	"mesz": 7200, "eet": 7200, "eest": 3 * 3600, "cat": 7200, "sast": 7200, "eat": 3 * 3600, "msk": 3 * 3600, "msd": 4 * 3600,
	"ist": 19800, "sgt": 8 * 3600, "kst": 9 * 3600, "jst": 9 * 3600, "gst": 10 * 3600, "nzst": 12 * 3600, "nzdt": 13 * 3600,
}

// word is what a name means; now's zone gives names of its own.
func word(text string, now time.Time) token {
	w := strings.ToLower(text)
	bare := strings.ReplaceAll(w, ".", "")
	if t, ok := relative[bare]; ok {
		return t
	}
	for name, n := range months {
		if w == name || len(bare) == 3 && strings.HasPrefix(name, bare) {
			return token{kind: month, value: n}
		}
	}
	for name, n := range weekdays {
		if w == name || len(bare) == 3 && strings.HasPrefix(name, bare) {
			return token{kind: weekday, value: n}
		}
	}
	if n, ok := zones[w]; ok {
		return token{kind: zone, value: n}
	}
	if name, east := now.Zone(); strings.EqualFold(name, w) {
		return token{kind: zone, value: int64(east)}
	}
	for _, s := range []string{w, strings.TrimSuffix(w, "s")} {
		if t, ok := units[s]; ok {
			t.kind = unit
			return t
		}
	}
	if n, ok := zones[bare]; ok {
		return token{kind: zone, value: n}
	}
	if len(w) == 1 {
		return military(w[0])
	}
	return token{kind: char, text: text}
}

// military is a zone of one letter.
func military(c byte) token {
	switch {
	case c == 't':
		return token{kind: letterT}
	case c == 'z':
		return token{kind: zone}
	case c >= 'a' && c <= 'i':
		return token{kind: zone, value: int64(c-'a'+1) * 3600}
	case c >= 'k' && c <= 'm':
		return token{kind: zone, value: int64(c-'k'+10) * 3600}
	case c >= 'n' && c <= 'y':
		return token{kind: zone, value: -int64(c-'n'+1) * 3600}
	}
	return token{kind: char, text: string(c)}
}

const (
	maxText   = 1 << 12 // longer is no date
	maxDigits = 18
)

// tokens cuts text up. Comments in parentheses and signs before anything but a
// number are nothing.
func tokens(text string, now time.Time) ([]token, bool) {
	var list []token
	if len(text) > maxText {
		return nil, false
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c >= '\t' && c <= '\r':
			i++
		case isDigit(c) || c == '+' || c == '-':
			t, n, ok := numberToken(text[i:])
			if !ok {
				return nil, false
			}
			if t.kind != end {
				list = append(list, t)
			}
			i += n
		case isLetter(c):
			j := i
			for j < len(text) && (isLetter(text[j]) || text[j] == '.') {
				j++
			}
			list = append(list, word(text[i:j], now))
			i = j
		case c == '(':
			depth := 0
			for ; i < len(text); i++ {
				if text[i] == '(' {
					depth++
				} else if text[i] == ')' {
					if depth--; depth == 0 {
						i++
						break
					}
				}
			}
			if depth > 0 {
				return nil, false
			}
		default:
			list = append(list, token{kind: char, text: string(c)})
			i++
		}
	}
	return list, true
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// numberToken reads a number, with a sign and a fraction; a sign alone is end.
func numberToken(s string) (t token, n int, ok bool) {
	t.kind = unsigned
	neg := false
	for n < len(s) && (s[n] == '+' || s[n] == '-') {
		neg = s[n] == '-'
		t.kind = signed
		n++
		for n < len(s) && s[n] == ' ' {
			n++
		}
		if n == len(s) || !isDigit(s[n]) {
			return token{}, n, true
		}
	}
	for ; n < len(s) && isDigit(s[n]); n++ {
		if t.digits++; t.digits > maxDigits {
			return t, n, false
		}
		t.value = t.value*10 + int64(s[n]-'0')
	}
	if n+1 < len(s) && (s[n] == '.' || s[n] == ',') && isDigit(s[n+1]) {
		t.kind = map[kind]kind{unsigned: udecimal, signed: sdecimal}[t.kind]
		n++
		for scale := int64(100_000_000); n < len(s) && isDigit(s[n]); n++ {
			t.nanos += int64(s[n]-'0') * scale
			scale /= 10
		}
	}
	if neg {
		t.value, t.nanos = -t.value, -t.nanos
	}
	return t, n, true
}
