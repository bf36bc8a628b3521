package date

import (
	"encoding/binary"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the session has no zone files
)

// UTC is TZ when it is not set.
const UTC = "UTC"

// Zone reports what TZ means: a place ("Europe/Berlin") or a rule of POSIX
// ("EST5EDT,M3.2.0,M11.1.0"). What means nothing is UTC, as in libc.
func Zone(tz string) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	if tz == "" || tz == "Local" {
		return time.UTC
	}
	if loc, err := time.LoadLocation(tz); err == nil {
		if loc == time.UTC {
			return time.FixedZone(tz, 0)
		}
		return loc
	}
	m := posixZone().FindStringSubmatch(tz)
	if m == nil {
		if name := leadingName().FindString(tz); name != "" {
			return time.FixedZone(name, 0)
		}
		return time.UTC
	}
	rule := tz
	if m[4] != "" && m[5] == "" {
		rule += ",M3.2.0,M11.1.0"
	}
	loc, err := time.LoadLocationFromTZData(tz, tzFile(strings.Trim(m[1], "<>"), offset(m[2], m[3]), rule))
	if err != nil {
		return time.UTC
	}
	return loc
}

var leadingName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]{3,}`) })

var posixZone = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)([+-]?)([0-9]{1,2}(?::[0-9]{2}(?::[0-9]{2})?)?)` +
		`([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)?(?:[+-]?[0-9:]+)?(,.*)?$`)
})

// offset is seconds east of Greenwich; POSIX counts west.
func offset(sign, text string) int {
	n, unit := 0, 3600
	for part := range strings.SplitSeq(text, ":") {
		v := 0
		for _, c := range part {
			v = v*10 + int(c-'0')
		}
		n += v * unit
		unit /= 60
	}
	if sign == "-" {
		return n
	}
	return -n
}

// tzFile makes the file of a zone that has no transitions and one rule: RFC
// 9636, version 2.
func tzFile(name string, east int, rule string) []byte {
	block := func(b []byte) []byte {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, n := range []int{0, 0, 0, 0, 1, len(name) + 1} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		b = binary.BigEndian.AppendUint32(b, uint32(int32(east)))
		b = append(b, 0, 0)
		return append(append(b, name...), 0)
	}
	b := block(block(nil))
	return append(append(append(b, '\n'), rule...), '\n')
}
