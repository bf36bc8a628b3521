package sort

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// sortKey is one -k: words and characters count from 0, -1 is "not given".
type sortKey struct {
	sword, schar int
	eword, echar int

	startBlanks, endBlanks bool // -b
	kind                   byte // one of n g h M V R, or 0
	kinds                  string
	dictionary, printing   bool
	fold, reverse          bool
}

// flag takes an ordering letter, of the start or the end of the key or both.
func (k *sortKey) flag(c byte, start, end bool) bool {
	switch c {
	case 'b':
		k.startBlanks = k.startBlanks || start
		k.endBlanks = k.endBlanks || end
	case 'd':
		k.dictionary = true
	case 'f':
		k.fold = true
	case 'i':
		k.printing = true
	case 'r':
		k.reverse = true
	case 'g', 'h', 'M', 'n', 'R', 'V':
		if k.kind = c; !strings.Contains(k.kinds, string(c)) {
			k.kinds += string(c)
		}
	default:
		return false
	}
	return true
}

func (k *sortKey) plain() bool {
	return k.kinds == "" && !k.startBlanks && !k.endBlanks && !k.dictionary && !k.printing && !k.fold
}

// incompatible names the letters that cannot go together; "" when they can.
func (k *sortKey) incompatible() string {
	n := strings.Trim(k.kinds, "RV")
	count := len(n)
	if strings.ContainsAny(k.kinds, "RV") || k.dictionary || k.printing {
		count++
	}
	if count <= 1 {
		return ""
	}
	out := ""
	for _, c := range "dfghiMnRV" {
		if c == 'd' && k.dictionary || c == 'i' && k.printing && !k.dictionary || strings.ContainsRune(k.kinds, c) || c == 'f' && k.fold {
			out += string(c)
		}
	}
	return out
}

// parseSortKey reads "POS1[,POS2]".
func parseSortKey(spec string) (sortKey, error) {
	k := sortKey{eword: -1}
	bad := func(why string) (sortKey, error) {
		return k, fmt.Errorf("%s: invalid field specification %s", why, gnu.Quote(spec))
	}
	s, ok := spec, true
	if k.sword, s, ok = sortCount(s); !ok {
		return k, fmt.Errorf("invalid number at field start: invalid count at start of %s", gnu.Quote(s))
	}
	if k.sword--; k.sword < 0 {
		return bad("field number is zero")
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if k.schar, s, ok = sortCount(rest); !ok {
			return k, fmt.Errorf("invalid number after '.': invalid count at start of %s", gnu.Quote(rest))
		}
		if k.schar--; k.schar < 0 {
			return bad("character offset is zero")
		}
	}
	s = k.flags(s, true)
	if rest, ok := strings.CutPrefix(s, ","); ok {
		if k.eword, s, ok = sortCount(rest); !ok {
			return k, fmt.Errorf("invalid number after ',': invalid count at start of %s", gnu.Quote(rest))
		}
		if k.eword--; k.eword < 0 {
			return bad("field number is zero")
		}
		if rest, ok := strings.CutPrefix(s, "."); ok {
			if k.echar, s, ok = sortCount(rest); !ok {
				return k, fmt.Errorf("invalid number after '.': invalid count at start of %s", gnu.Quote(rest))
			}
		}
		s = k.flags(s, false)
	}
	if s != "" {
		return bad("stray character in field spec")
	}
	return k, nil
}

func (k *sortKey) flags(s string, start bool) string {
	for s != "" && k.flag(s[0], start, !start) {
		s = s[1:]
	}
	return s
}

func sortCount(s string) (n int, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = min(n*10+int(s[i]-'0'), math.MaxInt32)
	}
	return n, s[i:], i > 0
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

func skipBlanks(text []byte, i int) int {
	for i < len(text) && blank(text[i]) {
		i++
	}
	return i
}

// skipWord goes over blanks and the word after them.
func skipWord(text []byte, i int) int {
	i = skipBlanks(text, i)
	for i < len(text) && !blank(text[i]) {
		i++
	}
	return i
}

// bounds is where the key lies in a line.
func (k *sortKey) bounds(text []byte, tab int) (from, to int) {
	from, to = k.begin(text, tab), k.end(text, tab)
	return from, max(from, to)
}

func (k *sortKey) begin(text []byte, tab int) int {
	i := 0
	for n := k.sword; n > 0 && i < len(text); n-- {
		if tab < 0 {
			i = skipWord(text, i)
		} else if at := bytes.IndexByte(text[i:], byte(tab)); at >= 0 {
			i += at + 1
		} else {
			i = len(text)
		}
	}
	if k.startBlanks {
		i = skipBlanks(text, i)
	}
	return min(len(text), i+k.schar)
}

func (k *sortKey) end(text []byte, tab int) int {
	if k.eword < 0 {
		return len(text)
	}
	words, i := k.eword, 0
	if k.echar == 0 {
		words++
	}
	for ; words > 0 && i < len(text); words-- {
		if tab < 0 {
			i = skipWord(text, i)
			continue
		}
		at := bytes.IndexByte(text[i:], byte(tab))
		if at < 0 {
			return len(text)
		}
		if i += at; words > 1 || k.echar > 0 {
			i++
		}
	}
	if k.echar == 0 {
		return i
	}
	if k.endBlanks {
		i = skipBlanks(text, i)
	}
	return min(len(text), i+k.echar)
}

// compare orders two keys, before -r.
func (k *sortKey) compare(a, b, seed []byte) int {
	if k.dictionary || k.printing || k.fold {
		if k.kind == 0 || k.kind == 'R' || k.kind == 'V' || k.fold || k.printing {
			a, b = k.transform(a), k.transform(b)
		}
	}
	switch k.kind {
	case 'n':
		return compareNumbers(skipped(a), skipped(b))
	case 'g':
		return compareGeneral(string(a), string(b))
	case 'h':
		return compareHuman(skipped(a), skipped(b))
	case 'M':
		return cmp.Compare(monthOf(a), monthOf(b))
	case 'V':
		return gnu.CompareVersions(string(a), string(b))
	case 'R':
		x, y := shuffled(a, b, seed)
		return cmp.Or(bytes.Compare(x[:], y[:]), bytes.Compare(a, b))
	}
	return bytes.Compare(a, b)
}

func skipped(b []byte) []byte { return b[skipBlanks(b, 0):] }

func (k *sortKey) transform(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, c := range b {
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if k.dictionary && !alnum && !blank(c) || k.printing && !k.dictionary && (c < 0x20 || c > 0x7e) {
			continue
		}
		if k.fold && c >= 'a' && c <= 'z' {
			c -= 32
		}
		out = append(out, c)
	}
	return out
}

func monthOf(b []byte) int {
	b = skipped(b)
	if len(b) < 3 {
		return 0
	}
	at := strings.Index("JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", string(asciiUpper(b[:3])))
	if at < 0 || at%3 != 0 {
		return 0
	}
	return at/3 + 1
}
