// Package mountinfo reads which file systems this process sees, and where:
//
//	table, err := mountinfo.Read()
//	names := table.Aliases("/path/to/file") // the other paths to it
package mountinfo

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Entry is one line of /proc/self/mountinfo.
type Entry struct {
	Device string // major:minor
	Root   string // the directory of the file system that is mounted
	Point  string // where it is mounted
}

// Table is every mount, in the order in which they were made.
type Table []Entry

// Read reads the mounts of this process. Every start does this, so it uses no
// scanner and no replacer, which cost more than the file.
func Read() (Table, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parse(string(data)), nil
}

func parse(data string) Table {
	t := make(Table, 0, 64)
	for line := range strings.Lines(data) {
		// mount ID, parent ID, major:minor, root, mount point, ... (proc_pid_mountinfo(5))
		_, rest, _ := strings.Cut(line, " ")
		_, rest, _ = strings.Cut(rest, " ")
		device, rest, _ := strings.Cut(rest, " ")
		root, rest, _ := strings.Cut(rest, " ")
		point, _, ok := strings.Cut(rest, " ")
		if ok {
			t = append(t, Entry{Device: device, Root: unescape(root), Point: unescape(point)})
		}
	}
	return t
}

// unescape undoes the octal escapes of mountinfo: \040 (space), \011, \012, \134.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b = append(b, byte(c))
				i += 3
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Devices lists the devices of the file systems that hold dirs, or are mounted
// below them.
func (t Table) Devices(dirs []string) map[string]bool {
	out := map[string]bool{}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		home := ""
		for _, m := range t { // the innermost, and of those the uppermost, is last
			if Within(m.Point, dir) {
				out[m.Device] = true
			}
			if Within(dir, m.Point) && len(m.Point) >= len(home) {
				home = m.Point
			}
		}
		for _, m := range t {
			if m.Point == home {
				out[m.Device] = true
			}
		}
	}
	return out
}

// DeviceName spells a device as Entry.Device does.
func DeviceName(major, minor uint32) string {
	return strconv.Itoa(int(major)) + ":" + strconv.Itoa(int(minor))
}

// Aliases lists the other paths by which the file at path can be reached,
// because its file system is mounted in more than one place.
func (t Table) Aliases(path string) []string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return nil
	}
	var home *Entry
	for i := range t {
		if Within(path, t[i].Point) && (home == nil || len(t[i].Point) >= len(home.Point)) {
			home = &t[i]
		}
	}
	if home == nil {
		return nil
	}
	inner := filepath.Join(home.Root, strings.TrimPrefix(path, home.Point))
	var out []string
	for _, m := range t {
		if m.Device != home.Device || !Within(inner, m.Root) {
			continue
		}
		alias := filepath.Join(m.Point, strings.TrimPrefix(inner, m.Root))
		var other unix.Stat_t
		if alias != path && unix.Lstat(alias, &other) == nil && other.Ino == st.Ino && other.Dev == st.Dev {
			out = append(out, alias)
		}
	}
	return out
}

// Within reports whether path is dir or lies below it.
func Within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}
