package builtin

import (
	"math"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/internal/date"
)

// time is %(format)T: seconds since the epoch, -1 for now, -2 for the start.
func (p *printfRun) time(format string) string {
	a, given := p.next()
	n := int64(-1)
	if given {
		n = p.seconds(a)
	}
	t := p.sh.Session.Now()
	switch {
	case n == -1:
	case n == -2:
		t = p.sh.Session.Began
	default:
		t = time.Unix(n, 0)
	}
	if format == "" {
		format = "%H:%M:%S"
	}
	most := int(min(p.sh.Session.Budget.Limits.String, math.MaxInt32))
	text, ok := date.Strftime(format, t.In(zone(p.sh.Vars.Get("TZ"))), most)
	if !ok {
		p.sh.CheckLen(most + 1)
	}
	return text
}

func (p *printfRun) seconds(a string) int64 {
	n, _ := p.integer(a)
	return n
}

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
