package grep

import (
	"strings"
	"unicode/utf8"
)

// glob is one --include or --exclude.
type glob struct {
	pattern string
	include bool
}

// globs are those that were given, in order: the last that matches decides.
type globs []glob

func trimSlashes(s string) string {
	if t := strings.TrimRight(s, "/"); t != "" {
		return t
	}
	return s
}

// skipped reports whether a file or directory is left out. What is below an
// operand is matched by its last name alone; an operand as it was written, and
// by any of its ends.
func (o *options) skipped(name string, dir, operand bool) bool {
	list := o.files
	if dir {
		list = o.dirs
	}
	if len(list) == 0 {
		return false
	}
	if !operand {
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	for i := len(list) - 1; i >= 0; i-- {
		if matchesEnd(list[i].pattern, name) {
			return !list[i].include
		}
	}
	return list[0].include
}

// matchesEnd matches name or what follows a slash in it.
func matchesEnd(pattern, name string) bool {
	for {
		if matchGlob(pattern, name) {
			return true
		}
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return false
		}
		name = rest
	}
}

// matchGlob is fnmatch(3) without flags: * and ? match a slash, too. It keeps
// one place to go back to, so its time is that of name times pattern.
func matchGlob(pattern, name string) bool {
	backPattern, backName := "", ""
	back := false
	for {
		switch {
		case strings.HasPrefix(pattern, "*"):
			pattern = pattern[1:]
			backPattern, backName, back = pattern, name, true
			continue
		case name == "" && pattern == "":
			return true
		case name != "" && pattern != "":
			if rest, ok := matchOne(pattern, name); ok {
				_, n := utf8.DecodeRuneInString(name)
				pattern, name = rest, name[n:]
				continue
			}
		}
		if !back || backName == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(backName)
		backName = backName[n:]
		pattern, name = backPattern, backName
	}
}

// matchOne matches the first character of name; rest is the pattern after.
func matchOne(pattern, name string) (rest string, ok bool) {
	r, _ := utf8.DecodeRuneInString(name)
	switch pattern[0] {
	case '?':
		return pattern[1:], true
	case '[':
		if rest, in, good := matchBracket(pattern[1:], r); good {
			return rest, in
		}
	case '\\':
		if len(pattern) > 1 {
			pattern = pattern[1:]
		}
	}
	p, n := utf8.DecodeRuneInString(pattern)
	return pattern[n:], p == r
}

// matchBracket matches r with what follows "["; not good: it has no end.
func matchBracket(pattern string, r rune) (rest string, in, good bool) {
	negated := strings.HasPrefix(pattern, "!") || strings.HasPrefix(pattern, "^")
	if negated {
		pattern = pattern[1:]
	}
	for first := true; pattern != ""; first = false {
		if pattern[0] == ']' && !first {
			return pattern[1:], in != negated, true
		}
		var lo rune
		if lo, pattern = bracketRune(pattern); pattern == "" {
			break
		}
		hi := lo
		if len(pattern) > 1 && pattern[0] == '-' && pattern[1] != ']' {
			hi, pattern = bracketRune(pattern[1:])
		}
		in = in || lo <= r && r <= hi
	}
	return "", false, false
}

func bracketRune(pattern string) (rune, string) {
	if pattern[0] == '\\' && len(pattern) > 1 {
		pattern = pattern[1:]
	}
	r, n := utf8.DecodeRuneInString(pattern)
	return r, pattern[n:]
}
