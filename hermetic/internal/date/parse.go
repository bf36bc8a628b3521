package date

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// parser holds what was read of a date so far.
type parser struct {
	toks []token

	dates, days, times, zonesSeen, rels int

	year, month, day    int64
	yearDigits          int
	hour, min, sec      int64
	nanos               int64
	half                int64 // meridian: -1 none, 0 am, 12 pm
	east                int64
	dayOrdinal, weekday int64
	relY, relM, relD    int64
	relH, relMin, relS  int64
	relN                int64
}

var zonePrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*TZ="((?:[^"\\]|\\.)*)"`) })

// ErrDate is what Parse reports.
var ErrDate = errors.New("invalid date")

// Parse reads a date as GNU date -d does, relative to now, in now's zone.
func Parse(text string, now time.Time) (time.Time, error) {
	rest, zone := text, now.Location()
	if m := zonePrefix().FindStringSubmatch(text); m != nil {
		now = now.In(Zone(m[1]))
		rest = text[len(m[0]):]
	}
	rest = strings.TrimLeft(rest, " \t")
	if strings.HasPrefix(rest, "@") {
		return parseStamp(rest[1:], now.In(zone))
	}
	toks, ok := tokens(rest, now)
	if !ok {
		return time.Time{}, ErrDate
	}
	p := &parser{toks: toks, half: -1}
	for len(p.toks) > 0 {
		if !p.item() {
			return time.Time{}, ErrDate
		}
	}
	t, ok := p.result(now)
	if !ok {
		return time.Time{}, ErrDate
	}
	return t.In(zone), nil
}

func parseStamp(s string, now time.Time) (time.Time, error) {
	toks, ok := tokens(s, now)
	if !ok || len(toks) != 1 || toks[0].kind == end || toks[0].kind > sdecimal {
		return time.Time{}, ErrDate
	}
	return time.Unix(toks[0].value, toks[0].nanos).In(now.Location()), nil
}

// at is the token n places ahead.
func (p *parser) at(n int) token {
	if n < len(p.toks) {
		return p.toks[n]
	}
	return token{}
}

func (p *parser) isChar(n int, c string) bool { return p.at(n).kind == char && p.at(n).text == c }

func (p *parser) kinds(want ...kind) bool {
	return len(p.toks) >= len(want) && !slices.ContainsFunc(indexes(want), func(i int) bool { return p.toks[i].kind != want[i] })
}

func indexes(k []kind) []int {
	n := make([]int, len(k))
	for i := range n {
		n[i] = i
	}
	return n
}

func (p *parser) drop(n int) bool {
	p.toks = p.toks[n:]
	return true
}

// item reads the longest thing that the next tokens begin.
func (p *parser) item() bool {
	t := p.at(0)
	switch t.kind {
	case unsigned:
		return p.afterNumber()
	case signed, udecimal, sdecimal, unit, ordinal, shift:
		if t.kind == ordinal && p.at(1).kind == weekday {
			return p.dayName(t.value, p.at(1).value, 2)
		}
		return p.relative()
	case month:
		return p.monthFirst()
	case weekday:
		n := 1
		if p.isChar(1, ",") {
			n = 2
		}
		return p.dayName(0, t.value, n)
	case zone:
		return p.zone(t.value)
	case letterT:
		return p.zone(-7 * 3600)
	case char:
		return t.text == "," && p.dates+p.days+p.times > 0 && p.drop(1)
	}
	return false
}

func (p *parser) afterNumber() bool {
	t := p.at(0)
	switch {
	case p.isChar(1, ":"):
		return p.clock()
	case p.isChar(1, "/"):
		return p.slashes()
	case p.kinds(unsigned, signed, signed):
		p.setDate(t.value, t.digits, -p.at(1).value, -p.at(2).value)
		p.drop(3)
		if p.at(0).kind == letterT {
			p.drop(1)
			return p.at(0).kind == unsigned && (p.isChar(1, ":") || p.at(1).kind == signed) && p.clock()
		}
		return true
	case p.kinds(unsigned, month):
		p.setDate(0, 0, p.at(1).value, t.value)
		if y := p.at(2); y.kind == signed && y.value <= 0 && p.at(3).kind != unit {
			p.year, p.yearDigits = -y.value, y.digits
			return p.drop(3)
		} else if y.kind == unsigned && !p.isChar(3, ":") && p.at(3).kind != unit && p.at(3).kind != meridian {
			p.year, p.yearDigits = y.value, y.digits
			return p.drop(3)
		}
		return p.drop(2)
	case p.kinds(unsigned, meridian):
		p.times++
		p.hour, p.min, p.sec, p.half = t.value, 0, 0, p.at(1).value
		return p.drop(2)
	case p.kinds(unsigned, weekday):
		return p.dayName(t.value, p.at(1).value, 2)
	case p.kinds(unsigned, unit):
		return p.relative()
	case p.kinds(unsigned, signed, unit):
		return p.plain(t) && p.relative()
	case p.kinds(unsigned, signed):
		return p.clock()
	}
	return p.plain(t)
}

// plain is a number that stands alone: a year, a date or a time.
func (p *parser) plain(t token) bool {
	switch {
	case p.dates > 0 && p.yearDigits == 0 && p.rels == 0 && (p.times > 0 || t.digits > 2):
		p.year, p.yearDigits = t.value, t.digits
	case t.digits > 4:
		p.setDate(t.value/10000, t.digits-4, t.value/100%100, t.value%100)
	case t.digits <= 2:
		p.times++
		p.hour, p.min, p.sec, p.half = t.value, 0, 0, -1
	default:
		p.times++
		p.hour, p.min, p.sec, p.half = t.value/100, t.value%100, 0, -1
	}
	return p.drop(1)
}

func (p *parser) setDate(y int64, digits int, m, d int64) {
	p.dates++
	p.year, p.yearDigits, p.month, p.day = y, digits, m, d
}

// clock is HH:MM[:SS[.N]] with am, pm or an offset after it, or HH with one.
func (p *parser) clock() bool {
	p.times++
	p.hour, p.min, p.sec, p.nanos, p.half = p.at(0).value, 0, 0, 0, -1
	p.drop(1)
	if p.isChar(0, ":") {
		if p.at(1).kind != unsigned {
			return false
		}
		p.min = p.at(1).value
		p.drop(2)
		if p.isChar(0, ":") {
			t := p.at(1)
			if t.kind != unsigned && t.kind != udecimal {
				return false
			}
			p.sec, p.nanos = t.value, t.nanos
			p.drop(2)
		}
	}
	switch t := p.at(0); t.kind {
	case meridian:
		p.half = t.value
		return p.drop(1)
	case signed:
		return p.offset(0)
	}
	return true
}

// offset reads +HH, +HHMM or +HH:MM after a zone that is base east.
func (p *parser) offset(base int64) bool {
	t := p.at(0)
	p.drop(1)
	n := t.value * 60
	neg := t.value < 0
	if p.isChar(0, ":") && p.at(1).kind == unsigned {
		mm := p.at(1).value
		if neg {
			mm = -mm
		}
		n += mm
		p.drop(2)
	} else if t.digits > 2 {
		n = t.value/100*60 + t.value%100
	}
	if n < -24*60 || n > 24*60 {
		return false
	}
	p.zonesSeen++
	p.east = base + n*60
	return true
}

func (p *parser) zone(east int64) bool {
	p.drop(1)
	if p.at(0).kind == dst {
		east += 3600
		p.drop(1)
	}
	if p.at(0).kind == signed && p.at(1).kind != unit {
		return p.offset(east)
	}
	p.zonesSeen++
	p.east = east
	return true
}

func (p *parser) slashes() bool {
	a, b := p.at(0), p.at(2)
	if b.kind != unsigned {
		return false
	}
	if !p.isChar(3, "/") {
		p.setDate(0, 0, a.value, b.value)
		return p.drop(3)
	}
	c := p.at(4)
	if c.kind != unsigned {
		return false
	}
	if a.digits >= 4 {
		p.setDate(a.value, a.digits, b.value, c.value)
	} else {
		p.setDate(c.value, c.digits, a.value, b.value)
	}
	return p.drop(5)
}

func (p *parser) monthFirst() bool {
	m := p.at(0).value
	switch {
	case p.kinds(month, signed, signed):
		p.setDate(-p.at(2).value, p.at(2).digits, m, -p.at(1).value)
		return p.drop(3)
	case p.at(1).kind != unsigned:
		return false
	}
	p.setDate(0, 0, m, p.at(1).value)
	if p.isChar(2, ",") && p.at(3).kind == unsigned {
		p.year, p.yearDigits = p.at(3).value, p.at(3).digits
		return p.drop(4)
	}
	return p.drop(2)
}

func (p *parser) dayName(ordinal, day int64, n int) bool {
	p.days++
	p.dayOrdinal, p.weekday = ordinal, day
	return p.drop(n)
}

// relative is "2 days", "next month", "week", "-1.5 seconds", "tomorrow", each
// with "ago" after it.
func (p *parser) relative() bool {
	t, u := p.at(0), p.at(1)
	n, nanos, used := t.value, t.nanos, 2
	switch t.kind {
	case shift:
		p.rels++
		p.relD += t.value
		return p.drop(1)
	case unit:
		n, u, used = 1, t, 1
	}
	if u.kind != unit || t.kind == udecimal && u.which != 's' || t.kind == sdecimal && u.which != 's' {
		return false
	}
	if used < len(p.toks) && p.at(used).kind == ago {
		n, nanos = n*p.at(used).value, nanos*p.at(used).value
		used++
	}
	const most = int64(1) << 40
	if n > most || n < -most {
		return false
	}
	p.rels++
	n *= u.value
	switch u.which {
	case 'y':
		p.relY += n
	case 'm':
		p.relM += n
	case 'd':
		p.relD += n
	case 'h':
		p.relH += n
	case 'M':
		p.relMin += n
	case 's':
		p.relS += n
		p.relN += nanos
	}
	return p.drop(used)
}
