package scan

import "strings"

// maxChain bounds how many operators join one list, one expression and the
// like: the parser keeps them inside each other, too.
const maxChain = 5000

// Shallow reports whether nothing in text is deeper than most, so that neither
// the parser nor who walks its tree uses up the stack.
//
// Threat: a script of nothing but "((((" or "${a:-${a:-" -> the parser calls
// itself for each, and Go ends the whole process when a stack is full -> the
// text is counted here first, by a loop. What is quoted is counted as if it were
// not, on the safe side: brackets that are balanced do no harm.
func Shallow(text string, most int) bool {
	depth, chain := 0, 0
	words := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case '\\':
			i++
			continue
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth > 0 {
				depth--
			}
		case '\n', ';':
			chain = 0
		case '|', '&', '!', '+', '-', '*', '/', '%', '<', '>', '=', '?', ':', ',', '~', '^', '`':
			if chain++; chain > maxChain {
				if !mostlyPlain(text) {
					return false
				}
				chain = 0
			}
		case '#':
			if i == 0 || strings.IndexByte(" \t\n;", text[i-1]) >= 0 {
				if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
					i += j - 1
					continue
				}
				return true
			}
		case '\'':
			if j := strings.IndexByte(text[i+1:], '\''); j >= 0 && !strings.ContainsAny(text[i+1:i+1+j], "$`(") {
				i += j + 1
				continue
			}
		}
		if isLetter(c) && (i == 0 || !isLetter(text[i-1])) {
			j := i
			for j < len(text) && isLetter(text[j]) {
				j++
			}
			switch text[i:j] {
			case "if", "while", "until", "for", "case", "select", "function", "time", "coproc", "elif", "do":
				words++
			case "fi", "done", "esac":
				if words > 0 {
					words--
				}
			}
			i = j - 1
		}
		if depth > most || words > most*4 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || '0' <= c && c <= '9'
}

// mostlyPlain reports a text whose operators are data: long lines of JSON or
// base64 have other characters between them.
func mostlyPlain(text string) bool {
	ops := 0
	for i := 0; i < len(text); i++ {
		if strings.IndexByte("|&!+-*/%<>=?~^`", text[i]) >= 0 {
			ops++
		}
	}
	return ops*8 < len(text)
}
