package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// zone is the time zone of $TZ: UTC, or an offset as POSIX writes it ("EST5",
// "CET-1"). A name such as Europe/Berlin would be read from a file of the host;
// here it is UTC.
func zone(tz string) *time.Location {
	i := 0
	for i < len(tz) && (tz[i] >= 'A' && tz[i] <= 'Z' || tz[i] >= 'a' && tz[i] <= 'z') {
		i++
	}
	if i < 3 || i == len(tz) {
		return time.UTC
	}
	name, rest := tz[:i], tz[i:]
	sign := -1
	switch rest[0] {
	case '-':
		sign, rest = 1, rest[1:]
	case '+':
		rest = rest[1:]
	}
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == ':') {
		end++
	}
	h, m, _ := strings.Cut(rest[:end], ":")
	hours, err := strconv.Atoi(h)
	if err != nil || hours > 24 {
		return time.UTC
	}
	minutes, _ := strconv.Atoi(m)
	return time.FixedZone(name, sign*(hours*3600+minutes*60))
}

// strftime is strftime(3) in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		pad := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			pad = format[i]
			i++
		}
		if (format[i] == 'E' || format[i] == 'O') && i+1 < len(format) {
			i++
		}
		s := timeField(t, format[i])
		switch pad {
		case '-':
			s = strings.TrimLeft(s[:max(len(s)-1, 0)], "0 ") + s[max(len(s)-1, 0):]
		case '_':
			trimmed := strings.TrimLeft(s[:max(len(s)-1, 0)], "0")
			s = strings.Repeat(" ", max(len(s)-1-len(trimmed), 0)) + trimmed + s[max(len(s)-1, 0):]
		case '^':
			s = strings.ToUpper(s)
		}
		b.WriteString(s)
	}
	return b.String()
}

func timeField(t time.Time, c byte) string {
	switch c {
	case 'a', 'A', 'b', 'B', 'h', 'd', 'H', 'I', 'm', 'M', 'p', 'S', 'y', 'Y', 'Z', 'z', 'c', 'D', 'F', 'r', 'R', 'T', 'x', 'X':
		layouts := map[byte]string{
			'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
			'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700", 'c': "Mon Jan _2 15:04:05 2006", 'D': "01/02/06",
			'F': "2006-01-02", 'r': "03:04:05 PM", 'R': "15:04", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05",
		}
		return t.Format(layouts[c])
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'e':
		return fmt.Sprintf("%2d", t.Day())
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'P':
		return strings.ToLower(t.Format("PM"))
	case 's':
		return strconv.FormatInt(t.Unix(), 10)
	case 'N':
		return fmt.Sprintf("%09d", t.Nanosecond())
	case 'u':
		return strconv.Itoa((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return strconv.Itoa(int(t.Weekday()))
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
	case 'V', 'G', 'g':
		y, w := t.ISOWeek()
		return map[byte]string{'V': fmt.Sprintf("%02d", w), 'G': strconv.Itoa(y), 'g': fmt.Sprintf("%02d", y%100)}[c]
	case '%':
		return "%"
	}
	return "%" + string(c)
}
