//go:build unix

package socket

import "golang.org/x/sys/unix"

// MaxConnections reports how many connections the limit on open files
// leaves room for: two descriptors each, and some for everything else. 0: any
// number.
func MaxConnections() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<30 {
		return 0
	}
	files := int(l.Cur)
	return max((files-files/20-64)/2, 1)
}
