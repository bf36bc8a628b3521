package awk

import (
	"strings"
	"unicode/utf8"
)

// splitBy splits s by fs: a space is white space, one character itself, and
// more a regex. lines: newlines part as well.
func (in *interp) splitBy(s, fs string, lines bool) (parts, seps []string, err error) {
	switch {
	case s == "":
		return nil, nil, nil
	case fs == " ":
		parts, seps = splitBlanks(s)
		return parts, seps, nil
	case fs == "":
		parts = splitChars(s)
		return parts, make([]string, max(len(parts)-1, 0)), nil
	case utf8.RuneCountInString(fs) == 1 && fs != "\\" && !in.ignoreCase && !lines:
		parts = strings.Split(s, fs)
		seps = make([]string, len(parts)-1)
		for i := range seps {
			seps[i] = fs
		}
		return parts, seps, nil
	case utf8.RuneCountInString(fs) == 1 && strings.ContainsAny(fs, `.[]*+?(){}|^$\`):
		fs = `\` + fs
	}
	if lines {
		fs = "(" + fs + ")|\n"
	}
	return in.splitRegex(s, fs)
}

// splitRegex splits s by a regex, whose empty matches part nothing.
func (in *interp) splitRegex(s, src string) (parts, seps []string, err error) {
	re, err := in.compile(src)
	if err != nil || s == "" {
		return nil, nil, err
	}
	b := []byte(s)
	last := 0
	for at := 0; at < len(b); {
		start, end, err := re.Span(b, at, 0)
		if err != nil {
			return nil, nil, err
		}
		if start < 0 {
			break
		}
		if start == end {
			_, n := utf8.DecodeRune(b[start:])
			at = start + max(n, 1)
			continue
		}
		parts = append(parts, s[last:start])
		seps = append(seps, s[start:end])
		last, at = end, end
		if err := in.step(); err != nil {
			return nil, nil, err
		}
	}
	return append(parts, s[last:]), seps, nil
}

// splitContent finds the fields that FPAT describes.
func (in *interp) splitContent(s, src string) (parts, seps []string, err error) {
	re, err := in.compile(src)
	if err != nil {
		return nil, nil, err
	}
	b := []byte(s)
	last := 0
	for at := 0; at <= len(b) && s != ""; {
		start, end, err := re.Span(b, at, 0)
		if err != nil {
			return nil, nil, err
		}
		if start < 0 {
			break
		}
		if start == end && start == last && len(parts) > 0 { // an empty field needs a separator before it
			if at++; start < at {
				continue
			}
		}
		seps = append(seps, s[last:start])
		parts = append(parts, s[start:end])
		last, at = end, end
		if start == end || at < len(b) {
			at = end + boolInt(start == end)
		}
		if end >= len(b) {
			break
		}
	}
	return parts, append(seps, s[min(last, len(s)):]), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func splitBlanks(s string) (parts, seps []string) {
	blank := func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
	i := 0
	for i < len(s) && blank(s[i]) {
		i++
	}
	seps = append(seps, s[:i])
	for i < len(s) {
		start := i
		for i < len(s) && !blank(s[i]) {
			i++
		}
		parts = append(parts, s[start:i])
		start = i
		for i < len(s) && blank(s[i]) {
			i++
		}
		seps = append(seps, s[start:i])
	}
	return parts, seps
}

func splitChars(s string) []string {
	var parts []string
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		parts = append(parts, s[:n])
		s = s[n:]
	}
	return parts
}
