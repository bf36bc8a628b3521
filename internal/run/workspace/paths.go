package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// safePath refuses names that are no place below the top of a work tree, or are in a
// repository's own directory under any of the names that file systems know it by.
func safePath(name string) error {
	bad := func(why string) error {
		return fmt.Errorf("workspace path %q must be a safe relative path: %s", name, why)
	}
	switch {
	case name == "" || path.IsAbs(name) || path.Clean(name) != name:
		return bad("it is not below the workspace")
	case strings.Contains(name, "\x00"):
		return bad("it has a NUL")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." || part == "." {
			return bad("it leads out of the workspace")
		}
		if gitDir(part) {
			return bad("it is in a repository's own directory")
		}
	}
	return nil
}

// portable reports whether a manifest can name a file: its format refuses what some
// systems read as something else.
func portable(name string) bool {
	return !strings.ContainsAny(name, "\\\n") && !strings.Contains(name, "//") && (len(name) < 2 || name[1] != ':') && utf8.ValidString(name)
}

// gitDir reports whether a name is .git to git or to a file system: in other letters,
// with characters that HFS+ ignores, or as NTFS shortens and extends it.
func gitDir(part string) bool {
	p := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, part)
	p, _, _ = strings.Cut(p, ":")
	p = strings.ToLower(strings.TrimRight(p, ". "))
	return p == ".git" || p == "git~1"
}

// patterns are those that name files, in the manner of minimatch with dots: one with a
// slash is for the whole path, another for its last element; ** is any number of
// elements. Letters compare in either case, because some file systems do.
type patterns []string

// parsePatterns checks patterns.
func parsePatterns(list []string) (patterns, error) {
	for _, p := range list {
		if strings.ContainsAny(p, "{}()!") {
			return nil, fmt.Errorf("pattern %q: braces, parentheses and ! are not known; write one pattern for each", p)
		}
		for part := range strings.SplitSeq(p, "/") {
			if _, err := path.Match(part, ""); err != nil || p == "" {
				return nil, fmt.Errorf("pattern %q is malformed", p)
			}
		}
	}
	return list, nil
}

func (list patterns) match(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(list, func(p string) bool {
		p = strings.ToLower(p)
		if !strings.Contains(p, "/") {
			return matches([]string{p}, []string{path.Base(name)})
		}
		return matches(strings.Split(p, "/"), strings.Split(name, "/"))
	})
}

// matches matches elements of a path.
func matches(pattern, name []string) bool {
	for ; len(pattern) > 0; pattern, name = pattern[1:], name[1:] {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if matches(pattern[1:], name[i:]) {
					return true
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
	}
	return len(name) == 0
}
