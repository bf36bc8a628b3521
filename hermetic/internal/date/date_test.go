package date

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	now := time.Date(2026, 11, 21, 19, 10, 13, 500, time.UTC)
	for _, c := range []struct{ in, want string }{
		{"now", "2026-11-21T19:10:13Z"},
		{"", "2026-11-21T00:00:00Z"},
		{"yesterday", "2026-11-20T19:10:13Z"},
		{"tomorrow 10:00", "2026-11-22T10:00:00Z"},
		{"last monday", "2026-11-16T00:00:00Z"},
		{"monday", "2026-11-23T00:00:00Z"},
		{"next saturday", "2026-11-28T00:00:00Z"},
		{"2 days ago", "2026-11-19T19:10:13Z"},
		{"2024-01-31 + 1 month", "2024-03-02T00:00:00Z"},
		{"2024-01-15 10:00 +3 hours", "2024-01-15T08:00:00Z"}, // +3 is a zone, then an hour
		{"1 Jan", "2026-01-01T00:00:00Z"},
		{"12/25", "2026-12-25T00:00:00Z"},
		{"@0", "1970-01-01T00:00:00Z"},
		{`TZ="America/New_York" 2024-01-15 10:20`, "2024-01-15T15:20:00Z"},
		{"2024-02-30", ""},
		{"25:00", ""},
		{"foo", ""},
		{"@", ""},
		{"two days ago", ""},
		{"2024-01-15 (open", ""},
	} {
		got, err := Parse(c.in, now)
		if c.want == "" {
			if err == nil {
				t.Errorf("%q is %v, want an error", c.in, got)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339) != c.want {
			t.Errorf("%q is %v, %v; want %s", c.in, got, err, c.want)
		}
	}
}

// A time that the clocks leave out is no time.
func TestGap(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, Zone("America/New_York"))
	if got, err := Parse("2024-03-10 02:30", now); err == nil {
		t.Errorf("2:30 on the day that has none is %v", got)
	}
}

func TestZone(t *testing.T) {
	at := time.Unix(1719835200, 0) // July
	for _, c := range []struct{ tz, want string }{
		{"", "+0000 UTC"},
		{"Local", "+0000 UTC"},
		{"Europe/Berlin", "+0200 CEST"},
		{"EST5EDT", "-0400 EDT"},
		{"<+03>-3", "+0300 +03"},
		{"CET-1CEST,M3.5.0,M10.5.0/3", "+0200 CEST"},
		{"Foo/Bar", "+0000 Foo"},
		{"../../etc/passwd", "+0000 UTC"},
		{":UTC", "+0000 UTC"},
	} {
		if got := Format("%z %Z", at.In(Zone(c.tz))); got != c.want {
			t.Errorf("TZ=%s is %s, want %s", c.tz, got, c.want)
		}
	}
}

func TestFormatIsBounded(t *testing.T) {
	if n := len(Format("%999999999999d", time.Now())); n != maxWidth {
		t.Errorf("a width of a million million gives %d bytes", n)
	}
}

func FuzzParse(f *testing.F) {
	now := time.Date(2026, 11, 21, 19, 10, 13, 0, time.UTC)
	for _, s := range []string{"2024-01-31 + 1 month", "last monday 10pm EST", "@1.5", "1/2/3 4:5:6.7 +08:30 2 days ago", `TZ="X" a`} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		if t, err := Parse(s, now); err == nil {
			_ = Format(s, t)
		}
	})
}
