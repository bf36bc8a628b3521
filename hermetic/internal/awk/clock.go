package awk

import (
	"fmt"
	"math"
	"strings"
	"time"

	"egressd/hermetic/internal/awk/value"
)

// zone is the time zone of $TZ; UTC when it says none that is known.
func (in *interp) zone(utc bool) *time.Location {
	name := in.c.Getenv("TZ")
	if utc || name == "" {
		return time.UTC
	}
	if z, err := time.LoadLocation(strings.TrimPrefix(name, ":")); err == nil {
		return z
	}
	return time.UTC
}

// strftime is strftime(3) in the C locale.
func (in *interp) strftime(format string, at float64, utc bool) string {
	if math.IsNaN(at) || math.Abs(at) > 1<<55 {
		at = 0
	}
	t := time.Unix(int64(math.Floor(at)), 0).In(in.zone(utc))
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := byte(0)
		for strings.IndexByte("-_0^#EO", format[i]) >= 0 && i+1 < len(format) {
			if format[i] == '-' || format[i] == '_' {
				pad = format[i]
			}
			i++
		}
		text := in.conversion(format[i], t)
		if pad != 0 && len(text) > 1 && text[0] == '0' {
			text = strings.TrimLeft(text[:len(text)-1], "0") + text[len(text)-1:]
			if pad == '_' {
				text = " " + text
			}
		}
		b.WriteString(text)
	}
	return b.String()
}

func (in *interp) conversion(c byte, t time.Time) string {
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06",
		'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04",
		'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
	}
	if l, ok := layouts[c]; ok {
		return t.Format(l)
	}
	year, week := t.ISOWeek()
	day := t.YearDay() - 1
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'g':
		return fmt.Sprintf("%02d", year%100)
	case 'G':
		return fmt.Sprint(year)
	case 'j':
		return fmt.Sprintf("%03d", day+1)
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 's':
		return fmt.Sprint(t.Unix())
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return fmt.Sprint(int(t.Weekday()))
	case 'U':
		return fmt.Sprintf("%02d", (day+7-int(t.Weekday()))/7)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'W':
		return fmt.Sprintf("%02d", (day+7-(int(t.Weekday())+6)%7)/7)
	}
	return "%" + string(c)
}

// mktime is mktime("YYYY MM DD HH MM SS"); -1: that is none.
func (in *interp) mktime(s string, utc bool) float64 {
	f := strings.Fields(s)
	if len(f) < 6 {
		return -1
	}
	var n [6]int
	for i := range n {
		v := value.ParseNumber(f[i], false)
		if math.Abs(v) > 1e9 {
			return -1
		}
		n[i] = int(v)
	}
	return float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, in.zone(utc)).Unix())
}
