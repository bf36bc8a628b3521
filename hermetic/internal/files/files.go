// Package files is the commands that list, copy, move, remove and describe
// files: ls, cp, mv, rm, stat, chmod and their like.
package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this room.
func Commands() command.Table {
	return command.Table{
		"basename": tool(basename), "chmod": tool(chmod), "cp": tool(cp), "dd": tool(dd),
		"dirname": tool(dirname), "du": tool(du), "file": tool(file), "install": tool(install),
		"ln": tool(ln), "ls": tool(ls), "mkdir": tool(mkdir),
		"mktemp": tool(mktemp), "mv": tool(mv), "readlink": tool(readlink), "realpath": tool(realpath),
		"rm": tool(rm), "rmdir": tool(rmdir), "stat": tool(stat), "touch": tool(touch),
		"tree": tool(tree), "truncate": tool(truncate), "unlink": tool(unlink),
	}
}

func tool(f func(*gnu.Work)) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := gnu.Begin(ctx, c)
		f(w)
		return w.End()
	}
}

// join puts a name into a directory, as GNU tools show it.
func join(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}

// last is the last part of a name, without slashes at its end.
func last(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" && name != "" {
		return "/"
	}
	return path.Base(trimmed)
}

// lstat and stat of an operand; "" is no file.
func lstat(w *gnu.Work, name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return w.FS.Lstat(w.Path(name))
}

func statOf(w *gnu.Work, name string) (fs.FileInfo, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	return w.FS.Stat(w.Path(name))
}

func isDir(w *gnu.Work, name string) bool {
	fi, err := statOf(w, name)
	return err == nil && fi.IsDir()
}

func is(err error, errno syscall.Errno) bool { return errors.Is(err, errno) }

// reason is the system's word for err.
func reason(err error) string { return command.Reason(err) }

// q is how a name stands in most messages.
func q(name string) string { return gnu.QuoteShell(name) }

// has says whether an option was given.
func has(sets []command.Set, names ...string) bool {
	for _, s := range sets {
		for _, n := range names {
			if s.Name == n {
				return true
			}
		}
	}
	return false
}

// oneOf finds the one of groups that value is a beginning of, and reports the
// first name of it; each group is names of one meaning with commas between. It
// complains as GNU tools do when there is none.
func oneOf(w *gnu.Work, option, value string, groups ...string) (string, bool) {
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
			b.WriteString([]string{"\n  - ", ", "}[min(i, 1)] + gnu.Quote(n))
		}
	}
	w.Usage = 1
	w.TryHelp("%s argument %s for %s\nValid arguments are:%s", problem, gnu.Quote(value), gnu.Quote(option), b.String())
	return "", false
}

// maxDepth bounds how deep directories are walked.
const maxDepth = 2000
