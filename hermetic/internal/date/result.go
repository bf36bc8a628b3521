package date

import "time"

const maxYear = 1 << 31

// result puts together what was read.
func (p *parser) result(now time.Time) (time.Time, bool) {
	if p.dates > 1 || p.days > 1 || p.times > 1 || p.zonesSeen > 1 {
		return time.Time{}, false
	}
	y, m, d := int64(now.Year()), int64(now.Month()), int64(now.Day())
	h, mi, s, ns := int64(now.Hour()), int64(now.Minute()), int64(now.Second()), int64(now.Nanosecond())
	loc := now.Location()
	if p.dates > 0 {
		m, d = p.month, p.day
		if p.yearDigits > 0 {
			y = fullYear(p.year, p.yearDigits)
		}
	}
	if p.times > 0 {
		var ok bool
		if h, ok = p.fullHour(); !ok {
			return time.Time{}, false
		}
		mi, s, ns = p.min, p.sec, p.nanos
	} else if p.rels == 0 || p.dates > 0 || p.days > 0 {
		h, mi, s, ns = 0, 0, 0, 0
	}
	if m < 1 || m > 12 || d < 1 || d > daysIn(y, m) || h > 23 || mi > 59 || s > 59 || y < 0 || y > maxYear {
		return time.Time{}, false
	}
	if p.zonesSeen > 0 {
		loc = time.FixedZone("", int(p.east))
	}
	if t := time.Date(int(y), time.Month(m), int(d), int(h), int(mi), int(s), 0, loc); int64(t.Hour()) != h || int64(t.Minute()) != mi {
		return time.Time{}, false // the clocks leave this time out
	}
	if p.days > 0 && p.dates == 0 {
		today := int64(weekdayOf(y, m, d))
		step := p.dayOrdinal
		if p.dayOrdinal > 0 && today != p.weekday {
			step--
		}
		d += (p.weekday-today+7)%7 + 7*step
	}
	return p.addRelative([]int64{y, m, d, h, mi, s, ns}, loc, now)
}

func (p *parser) addRelative(f []int64, loc *time.Location, now time.Time) (time.Time, bool) {
	year, mon, day := f[0]+p.relY, f[1]+p.relM, f[2]+p.relD
	const most = int64(1) << 36
	for _, n := range []int64{year, mon, day} {
		if n > most || n < -most {
			return time.Time{}, false
		}
	}
	t := time.Date(int(year), time.Month(mon), int(day), int(f[3]), int(f[4]), int(f[5]), int(f[6]), loc)
	secs := p.relH*3600 + p.relMin*60 + p.relS
	t = time.Unix(t.Unix()+secs, int64(t.Nanosecond())+p.relN)
	if t = t.In(now.Location()); t.Year() < 0 || t.Year() > maxYear {
		return time.Time{}, false
	}
	return t, true
}

func fullYear(y int64, digits int) int64 {
	if digits != 2 {
		return y
	}
	if y < 69 {
		return y + 2000
	}
	return y + 1900
}

func (p *parser) fullHour() (int64, bool) {
	if p.half < 0 {
		return p.hour, p.hour <= 23
	}
	if p.hour < 1 || p.hour > 12 {
		return 0, false
	}
	return p.hour%12 + p.half, true
}

func daysIn(y, m int64) int64 {
	return int64(time.Date(int(y), time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

func weekdayOf(y, m, d int64) time.Weekday {
	return time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC).Weekday()
}
