package awk

import (
	"errors"
	"math"
	"strings"
	"time"

	"egressd/hermetic/internal/awk/value"
	"egressd/hermetic/internal/date"
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
func (in *interp) strftime(format string, at float64, utc bool) (value.Value, error) {
	if math.IsNaN(at) || math.Abs(at) > 1<<55 {
		at = 0
	}
	most := int(min(in.c.Budget.Limits.String, math.MaxInt32))
	text, ok := date.Strftime(format, time.Unix(int64(math.Floor(at)), 0).In(in.zone(utc)), most)
	if !ok {
		return value.Value{}, errors.New("strftime: the string is too long")
	}
	return value.Str(text), nil
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
