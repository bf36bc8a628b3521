package date

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxWidth bounds a width in a format; wider is cut.
const maxWidth = 4096

// directive is one %… of a format.
type directive struct {
	pad    byte // '_', '-', '0', '+', or 0: as the letter has it
	upper  bool
	swap   bool
	width  int
	colons int
	mod    byte
	letter byte
}

// Format writes t as strftime of GNU date does in the C locale. A directive
// that there is not is left as it stands.
func Format(format string, t time.Time) string {
	s, _ := expand(format, t, bounds{extensions: true, most: math.MaxInt})
	return s
}

// Strftime writes t as strftime(3) of glibc does in the C locale: Format without
// the directives %N, %q and %:z of GNU date. Its result has at most most bytes;
// false: it would have more.
func Strftime(format string, t time.Time, most int) (string, bool) {
	return expand(format, t, bounds{most: most})
}

// bounds is what a format may have and write.
type bounds struct {
	extensions bool // those of GNU date
	most       int  // bytes
}

func expand(format string, t time.Time, limit bounds) (string, bool) {
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(format, "%")
		b.WriteString(before)
		if b.Len() > limit.most {
			return "", false
		}
		if !more {
			return b.String(), true
		}
		d, n := readDirective(rest)
		s, known := "", false
		if n > 0 && (limit.extensions || d.letter != 'N' && d.letter != 'q' && d.colons == 0) {
			s, known = d.expand(t)
		}
		if !known {
			s = "%" + rest[:n]
		}
		b.WriteString(s)
		format = rest[n:]
	}
}

// readDirective reads what follows a percent sign, and its length.
func readDirective(s string) (d directive, n int) {
	d.width = -1
	for ; n < len(s); n++ {
		switch s[n] {
		case '_', '-', '0', '+':
			d.pad = s[n]
			continue
		case '^':
			d.upper = true
			continue
		case '#':
			d.swap = true
			continue
		}
		break
	}
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		d.width = min(max(d.width, 0)*10+int(s[n]-'0'), maxWidth)
		n++
	}
	for n < len(s) && s[n] == ':' {
		d.colons++
		n++
	}
	if n < len(s) && (s[n] == 'E' || s[n] == 'O') {
		d.mod = s[n]
		n++
	}
	if n == len(s) {
		return d, n
	}
	d.letter = s[n]
	return d, n + 1
}

func (d directive) expand(t time.Time) (string, bool) {
	if d.colons > 0 && d.letter != 'z' {
		return "", false
	}
	if s, ok := d.text(t); ok {
		return d.padText(s), true
	}
	if n, width, pad, ok := number(d.letter, t); ok {
		return d.padNumber(n, width, pad), true
	}
	switch d.letter {
	case 'N':
		return d.nanos(t), true
	case 'z':
		return d.zone(t)
	case 's':
		return d.padNumber(t.Unix(), 1, '0'), true
	}
	return "", false
}

func (d directive) text(t time.Time) (string, bool) {
	composite := map[byte]string{
		'c': "%a %b %e %H:%M:%S %-Y", 'D': "%m/%d/%y", 'x': "%m/%d/%y", 'F': "%Y-%m-%d",
		'r': "%I:%M:%S %p", 'R': "%H:%M", 'T': "%H:%M:%S", 'X': "%H:%M:%S",
	}
	if f, ok := composite[d.letter]; ok {
		return Format(f, t), true
	}
	switch d.letter {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'a':
		return d.caps(t.Weekday().String()[:3]), true
	case 'A':
		return d.caps(t.Weekday().String()), true
	case 'b', 'h':
		return d.caps(t.Month().String()[:3]), true
	case 'B':
		return d.caps(t.Month().String()), true
	case 'p':
		if d.swap {
			return strings.ToLower(t.Format("PM")), true
		}
		return t.Format("PM"), true
	case 'P':
		return strings.ToLower(t.Format("PM")), true
	case 'Z':
		z, _ := t.Zone()
		if d.swap {
			return strings.ToLower(z), true
		}
		return z, true
	}
	return "", false
}

// caps is what # does to names: all capitals.
func (d directive) caps(s string) string {
	if d.swap {
		return strings.ToUpper(s)
	}
	return s
}

func (d directive) padText(s string) string {
	if d.upper && d.letter != 'P' {
		s = strings.ToUpper(s)
	}
	if d.pad == '-' || len(s) >= d.width {
		return s
	}
	fill := " "
	if d.pad == '0' || d.pad == '+' {
		fill = "0"
	}
	return strings.Repeat(fill, d.width-len(s)) + s
}

// number reports the value of a numeric directive, its width and its padding.
func number(letter byte, t time.Time) (n int64, width int, pad byte, ok bool) {
	iso, week := t.ISOWeek()
	two := func(n int) (int64, int, byte, bool) { return int64(n), 2, '0', true }
	one := func(n int) (int64, int, byte, bool) { return int64(n), 1, '0', true }
	switch letter {
	case 'C':
		return two(floor(t.Year(), 100))
	case 'd':
		return two(t.Day())
	case 'e':
		return int64(t.Day()), 2, '_', true
	case 'g':
		return two(((iso % 100) + 100) % 100)
	case 'G':
		return int64(iso), 4, '0', true
	case 'H':
		return two(t.Hour())
	case 'I':
		return two((t.Hour()+11)%12 + 1)
	case 'j':
		return int64(t.YearDay()), 3, '0', true
	case 'k':
		return int64(t.Hour()), 2, '_', true
	case 'l':
		return int64((t.Hour()+11)%12 + 1), 2, '_', true
	case 'm':
		return two(int(t.Month()))
	case 'M':
		return two(t.Minute())
	case 'q':
		return one((int(t.Month())-1)/3 + 1)
	case 'S':
		return two(t.Second())
	case 'u':
		return one((int(t.Weekday())+6)%7 + 1)
	case 'U':
		return two((t.YearDay() + 6 - int(t.Weekday())) / 7)
	case 'V':
		return two(week)
	case 'w':
		return one(int(t.Weekday()))
	case 'W':
		return two((t.YearDay() + 6 - (int(t.Weekday())+6)%7) / 7)
	case 'y':
		return two(((t.Year() % 100) + 100) % 100)
	case 'Y':
		return int64(t.Year()), 4, '0', true
	}
	return 0, 0, 0, false
}

func floor(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

func (d directive) padNumber(n int64, width int, pad byte) string {
	if d.pad != 0 {
		pad = d.pad
	}
	if d.width >= 0 {
		width = d.width
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := strconv.FormatInt(n, 10)
	switch {
	case pad == '-':
	case pad == '_':
		if gap := width - len(sign) - len(s); gap > 0 {
			return strings.Repeat(" ", gap) + sign + s
		}
	default:
		most := map[byte]int{'Y': 4, 'G': 4, 'C': 2}[d.letter]
		if pad == '+' && most > 0 && sign == "" && max(len(s), d.width) > most {
			sign = "+"
		}
		if gap := width - len(sign) - len(s); gap > 0 {
			return sign + strings.Repeat("0", gap) + s
		}
	}
	return sign + s
}

func (d directive) nanos(t time.Time) string {
	s := fmt.Sprintf("%09d", t.Nanosecond())
	if d.width <= 0 {
		return s
	}
	if d.width <= 9 {
		return s[:d.width]
	}
	return s + strings.Repeat("0", d.width-9)
}

func (d directive) zone(t time.Time) (string, bool) {
	_, east := t.Zone()
	sign := byte('+')
	if east < 0 {
		sign, east = '-', -east
	}
	h, m, s := east/3600, east/60%60, east%60
	var tail string
	switch {
	case d.colons == 0:
		tail = fmt.Sprintf("%02d", m)
	case d.colons == 1:
		tail = fmt.Sprintf(":%02d", m)
	case d.colons == 2:
		tail = fmt.Sprintf(":%02d:%02d", m, s)
	case d.colons > 3:
		return "", false
	case s != 0:
		tail = fmt.Sprintf(":%02d:%02d", m, s)
	case m != 0:
		tail = fmt.Sprintf(":%02d", m)
	}
	hours := fmt.Sprintf("%02d", h)
	if d.pad == '-' || d.pad == '_' {
		out := string(sign) + strings.TrimLeft(hours[:1], "0") + hours[1:] + tail
		if d.colons == 0 {
			out = string(sign) + strconv.Itoa(h*100+m)
		}
		if d.pad == '-' {
			return out, true
		}
		return strings.Repeat(" ", max(0, max(d.width, 3+len(tail))-len(out))) + out, true
	}
	gap := max(0, d.width-1-len(hours)-len(tail))
	return string(sign) + strings.Repeat("0", gap) + hours + tail, true
}
