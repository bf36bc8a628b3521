package gnu

import (
	"io/fs"
	"path"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// Join puts a name into a directory, as GNU tools show it.
func Join(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// Last is the last part of a name, without slashes at its end.
func Last(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" && name != "" {
		return "/"
	}
	return path.Base(trimmed)
}

// Lstat is lstat(2) of an operand; "" names no file.
func Lstat(w *Work, name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return w.FS.Lstat(w.Path(name))
}

// Stat is stat(2) of an operand; "" names no file.
func Stat(w *Work, name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return w.FS.Stat(w.Path(name))
}

// IsDir reports whether an operand is a directory, or a link to one.
func IsDir(w *Work, name string) bool {
	fi, err := Stat(w, name)
	return err == nil && fi.IsDir()
}

// Has says whether an option was given.
func Has(sets []command.Set, names ...string) bool {
	for _, s := range sets {
		for _, n := range names {
			if s.Name == n {
				return true
			}
		}
	}
	return false
}

// OneOf finds the one of groups that value is a beginning of, and reports the
// first name of it; each group is names of one meaning with commas between. It
// complains as GNU tools do when there is none.
func OneOf(w *Work, option, value string, groups ...string) (string, bool) {
	found, problem := "", "invalid"
	for _, g := range groups {
		names := strings.Split(g, ",")
		for _, n := range names {
			if n == value {
				return names[0], true
			}
			if strings.HasPrefix(n, value) {
				if found != "" && found != names[0] {
					problem = "ambiguous"
				}
				found = names[0]
			}
		}
	}
	if found != "" && problem == "invalid" {
		return found, true
	}
	var b strings.Builder
	for _, g := range groups {
		for i, n := range strings.Split(g, ",") {
			b.WriteString([]string{"\n  - ", ", "}[min(i, 1)] + Quote(n))
		}
	}
	w.Usage = 1
	w.TryHelp("%s argument %s for %s\nValid arguments are:%s", problem, Quote(value), Quote(option), b.String())
	return "", false
}

// MaxDepth bounds how deep directories are walked.
const MaxDepth = 2000

// TrimSlashes is s without slashes at its end; "/" stays.
func TrimSlashes(s string) string {
	if t := strings.TrimRight(s, "/"); t != "" {
		return t
	}
	return s
}
