// Package cgroup reads the limits of this process's control group:
//
//	limit, found := cgroup.MemoryMax(os.DirFS("/"))
package cgroup

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const (
	proc   = "proc/self/cgroup"
	mounts = "sys/fs/cgroup"

	// unlimited is where version 1 writes a number for no limit: the largest
	// number of whole pages, whatever their size.
	unlimited = 1 << 60
)

// MemoryMax reports the bytes of memory that this process's control group may
// hold: the smallest limit of the group and its parents, of version 2 or 1. root
// is the file system's root. False: there is no limit, or none can be read.
func MemoryMax(root fs.FS) (limit int64, found bool) {
	groups, err := fs.ReadFile(root, proc)
	if err != nil {
		return 0, false
	}
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// hierarchy-ID:controller-list:cgroup-path, see cgroups(7)
		f := strings.SplitN(lines.Text(), ":", 3)
		if len(f) < 3 {
			continue
		}
		dir, file := mounts, "memory.max"
		if f[1] != "" {
			if !strings.Contains(","+f[1]+",", ",memory,") {
				continue
			}
			dir, file = mounts+"/memory", "memory.limit_in_bytes"
		}
		// A limit of a parent holds as well.
		for at := path.Clean("/" + f[2]); ; at = path.Dir(at) {
			if n, ok := number(root, path.Join(dir, at, file)); ok && (!found || n < limit) {
				limit, found = n, true
			}
			if at == "/" {
				break
			}
		}
	}
	return limit, found
}

func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is not a number
	return n, err == nil && n > 0 && n < unlimited
}
