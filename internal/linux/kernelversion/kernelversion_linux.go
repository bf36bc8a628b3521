// Package kernelversion compares the running kernel's version.
package kernelversion

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// AtLeast reports whether the kernel is Linux major.minor or later. It reports
// false if the version can't be read.
func AtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	a, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	b, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(strings.TrimRight(b, "-+abcdefghijklmnopqrstuvwxyz"))
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}
