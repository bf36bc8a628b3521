package kernelversion

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// The order is that of numbers, major first: 6.9 is before 6.14, and 5.99 before
// both.
func TestAtLeast(t *testing.T) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Skip(err)
	}
	m := regexp.MustCompile(`^(\d+)\.(\d+)`).FindSubmatch(release)
	if m == nil {
		t.Skipf("an unusual version: %s", release)
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	for _, c := range []struct {
		major, minor int
		want         bool
	}{
		{major, minor, true},
		{major, 0, true},
		{major - 1, minor + 100, true},
		{0, 0, true},
		{major, minor + 1, false},
		{major + 1, 0, false},
	} {
		if got := AtLeast(c.major, c.minor); got != c.want {
			t.Errorf("%s: at least %d.%d: %v", release, c.major, c.minor, got)
		}
	}
}
