package date

import (
	"strings"
	"testing"
	"time"
)

// What bash 5.2 with glibc 2.36 prints of printf '%(...)T' 1000000000 in UTC.
func TestStrftime(t *testing.T) {
	for format, want := range map[string]string{
		"%F %T %Z%z": "2001-09-09 01:46:40 UTC+0000",
		"%-d|%_d|%e": "9| 9| 9",
		"%^a|%#a|%P": "SUN|SUN|am",
		"%5d|%_8Y|":  "00009|    2001|",
		"%-I|%k|%l":  "1| 1| 1",
		"%U %V %W":   "36 36 36",
		"%c":         "Sun Sep  9 01:46:40 2001",
		"%N %q %+":   "%N %q %+",
		"%Q%":        "%Q%",
		"%s%%":       "1000000000%",
	} {
		if got, ok := Strftime(format, time.Unix(1e9, 0).UTC(), 100); got != want || !ok {
			t.Errorf("%s: %q %t, want %q", format, got, ok, want)
		}
	}
}

// Threat: a format of many wide directives.
func TestStrftimeBound(t *testing.T) {
	at := time.Unix(0, 0).UTC()
	if s, ok := Strftime(strings.Repeat("%4000d", 1000), at, 10000); ok {
		t.Errorf("%d bytes are written, over the limit of 10000", len(s))
	}
	if s, ok := Strftime("%4000d", at, 4000); !ok || len(s) != 4000 {
		t.Errorf("%d bytes, %t: the limit itself is allowed", len(s), ok)
	}
}
