// Package gitignore tells which files of a work tree git would leave out, from
// its .gitignore files and its index, without running git: what a repository's
// configuration names as programs must not run because somebody looked at it.
//
// Source: gitignore(5) and git's wildmatch; the user's own excludes file is not
// read, since it says nothing about the project.
package gitignore

import (
	"bytes"
	"path"
	"strings"
)

// Bounds of what is read: more patterns than these are no patterns that a
// person wrote.
const (
	MaxFile     = 1 << 20 // bytes of one .gitignore
	maxPatterns = 50_000
)

// rule is one line.
type rule struct {
	base     string // directory of the file that it was in, "" or "a/b/"
	pattern  string
	negated  bool // takes an earlier match back
	dirOnly  bool
	anchored bool // matches the path below base, not the last element of it
}

// Matcher holds the rules of one work tree, in the order in which they were
// added: those of deeper directories later. The zero Matcher ignores nothing.
// Not safe for concurrent use.
type Matcher struct {
	rules []rule
}

// Add reads the rules of a .gitignore in the directory dir ("" is the top,
// else without a slash at the end). Bytes beyond MaxFile are not read.
func (m *Matcher) Add(dir string, text []byte) {
	if dir != "" {
		dir += "/"
	}
	text = bytes.TrimPrefix(text[:min(len(text), MaxFile)], []byte("\ufeff"))
	for line := range bytes.Lines(text) {
		if len(m.rules) >= maxPatterns {
			return
		}
		if r, ok := parse(strings.TrimRight(string(line), "\r\n")); ok {
			r.base = dir
			m.rules = append(m.rules, r)
		}
	}
}

// Len and Cut let a walk drop a directory's rules when it leaves it.
func (m *Matcher) Len() int { return len(m.rules) }

// Cut drops every rule after the first n.
func (m *Matcher) Cut(n int) { m.rules = m.rules[:n] }

func parse(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	if after, found := strings.CutPrefix(line, "!"); found {
		r.negated, line = true, after
	}
	line = trimSpaces(line)
	if after, found := strings.CutSuffix(line, "/"); found {
		r.dirOnly, line = true, after
	}
	if at := strings.IndexByte(line, '/'); at >= 0 {
		r.anchored = true
		line = strings.TrimPrefix(line, "/")
	}
	r.pattern = line
	return r, line != ""
}

// trimSpaces cuts spaces at the end that no backslash protects.
func trimSpaces(s string) string {
	for strings.HasSuffix(s, " ") {
		escapes := 0
		for i := len(s) - 2; i >= 0 && s[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 1 {
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}

// Ignored reports whether the last rule that matches name, a slash-separated
// path below the top, leaves it out. A caller that walks does not enter an
// ignored directory: nothing in it can be taken back.
func (m *Matcher) Ignored(name string, isDir bool) bool {
	for i := len(m.rules) - 1; i >= 0; i-- {
		if m.rules[i].matches(name, isDir) {
			return !m.rules[i].negated
		}
	}
	return false
}

func (r *rule) matches(name string, isDir bool) bool {
	below, ok := strings.CutPrefix(name, r.base)
	if !ok || below == "" || r.dirOnly && !isDir {
		return false
	}
	if !r.anchored {
		return wildmatch(r.pattern, path.Base(below))
	}
	return wildmatch(r.pattern, below)
}
