package syntax

import (
	"fmt"
	"strings"

	"egressd/hermetic/internal/awk/value"
)

// kind is what a token is.
type kind int

const (
	tEOF kind = iota
	tNewline
	tNumber
	tString
	tRegex
	tName
	tFuncName // a name with "(" right after it
	tBuiltin
	tKeyword
	tOp
)

type token struct {
	kind kind
	text string // of an operator or keyword, itself
	num  float64
	line int
}

type lexer struct {
	src  string
	pos  int
	line int
	last token // the one before, which says whether "/" begins a regex
}

// syntaxError is a mistake in the program.
type syntaxError struct {
	line int
	text string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%d: %s", e.line, e.text) }

var keywords = map[string]bool{
	"BEGIN": true, "END": true, "BEGINFILE": true, "ENDFILE": true, "function": true, "func": true, "if": true, "else": true,
	"while": true, "for": true, "do": true, "break": true, "continue": true, "next": true, "nextfile": true, "exit": true,
	"return": true, "delete": true, "in": true, "getline": true, "print": true, "printf": true, "switch": true, "case": true, "default": true,
}

// Builtins are the functions with the least and the most arguments they take.
var Builtins = map[string][2]int{
	"atan2": {2, 2}, "close": {1, 2}, "cos": {1, 1}, "exp": {1, 1}, "fflush": {0, 1}, "gsub": {2, 3}, "index": {2, 2}, "int": {1, 1},
	"length": {0, 1}, "log": {1, 1}, "match": {2, 3}, "rand": {0, 0}, "sin": {1, 1}, "split": {2, 4}, "sprintf": {1, 1 << 20},
	"sqrt": {1, 1}, "srand": {0, 1}, "sub": {2, 3}, "substr": {2, 3}, "system": {1, 1}, "tolower": {1, 1}, "toupper": {1, 1},
	"gensub": {3, 4}, "strftime": {0, 3}, "systime": {0, 0}, "mktime": {1, 2}, "asort": {1, 3}, "asorti": {1, 3}, "strtonum": {1, 1},
	"and": {2, 1 << 20}, "or": {2, 1 << 20}, "xor": {2, 1 << 20}, "lshift": {2, 2}, "rshift": {2, 2}, "compl": {1, 1},
	"patsplit": {2, 4}, "typeof": {1, 1}, "isarray": {1, 1},
}

var operators = []string{
	"**=", "&&", "||", ">>", "|&", "==", "<=", ">=", "!=", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", "!~",
	"{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=", "@",
}

// next reads a token.
func (l *lexer) next() (token, error) {
	t, err := l.scan()
	l.last = t
	return t, err
}

func (l *lexer) blanks() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case c == '\\' && strings.HasPrefix(l.src[l.pos+1:], "\n"):
			l.pos += 2
			l.line++
		case c == '\\' && strings.HasPrefix(l.src[l.pos+1:], "\r\n"):
			l.pos += 3
			l.line++
		case c == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		default:
			return
		}
	}
}

func (l *lexer) scan() (token, error) {
	l.blanks()
	t := token{line: l.line}
	if l.pos >= len(l.src) {
		return t, nil
	}
	c := l.src[l.pos]
	switch {
	case c == '\n':
		l.pos++
		l.line++
		t.kind = tNewline
		return t, nil
	case c == '"':
		return l.str()
	case c == '/' && l.regexAllowed():
		return l.regex()
	case value.IsDigit(c) || c == '.' && l.pos+1 < len(l.src) && value.IsDigit(l.src[l.pos+1]):
		return l.Number(), nil
	case value.IsLetter(c):
		return l.word(), nil
	}
	for _, op := range operators {
		if strings.HasPrefix(l.src[l.pos:], op) {
			l.pos += len(op)
			t.kind, t.text = tOp, op
			switch op {
			case "**":
				t.text = "^"
			case "**=":
				t.text = "^="
			}
			return t, nil
		}
	}
	return t, &syntaxError{l.line, fmt.Sprintf("syntax error: unexpected character %q", c)}
}

// IsName reports whether s can be the name of a variable.
func IsName(s string) bool {
	for i := range len(s) {
		if !value.IsLetter(s[i]) && (i == 0 || !value.IsDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

// regexAllowed reports whether a "/" here begins a regex: no value is before.
func (l *lexer) regexAllowed() bool {
	switch l.last.kind {
	case tNumber, tString, tRegex, tName, tBuiltin:
		return false
	case tOp:
		return l.last.text != ")" && l.last.text != "]" && l.last.text != "$" && l.last.text != "++" && l.last.text != "--"
	}
	return true
}

func (l *lexer) word() token {
	start := l.pos
	for l.pos < len(l.src) && (value.IsLetter(l.src[l.pos]) || value.IsDigit(l.src[l.pos])) {
		l.pos++
	}
	t := token{kind: tName, text: l.src[start:l.pos], line: l.line}
	_, builtin := Builtins[t.text]
	switch {
	case keywords[t.text]:
		t.kind = tKeyword
		if t.text == "func" {
			t.text = "function"
		}
	case builtin:
		t.kind = tBuiltin
	case l.pos < len(l.src) && l.src[l.pos] == '(':
		t.kind = tFuncName
	}
	return t
}

func (l *lexer) Number() token {
	n := value.NumberLen(l.src[l.pos:], true)
	text := l.src[l.pos : l.pos+n]
	l.pos += n
	return token{kind: tNumber, text: text, num: value.ParseNumber(text, true), line: l.line}
}

func (l *lexer) str() (token, error) {
	start := l.pos + 1
	for i := start; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
			if i < len(l.src) && l.src[i] == '\n' {
				l.line++
			}
		case '\n':
			return token{}, &syntaxError{l.line, "unterminated string"}
		case '"':
			t := token{kind: tString, text: Unescape(l.src[start:i]), line: l.line}
			l.pos = i + 1
			return t, nil
		}
	}
	return token{}, &syntaxError{l.line, "unterminated string"}
}

func (l *lexer) regex() (token, error) {
	start := l.pos + 1
	bracket := false
	for i := start; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '\n':
			return token{}, &syntaxError{l.line, "unterminated regexp"}
		case '[':
			if !bracket {
				bracket = true
				if i+1 < len(l.src) && l.src[i+1] == '^' {
					i++
				}
				if i+1 < len(l.src) && l.src[i+1] == ']' {
					i++
				}
			} else if i+1 < len(l.src) && l.src[i+1] == ':' {
				if at := strings.Index(l.src[i:], ":]"); at > 0 {
					i += at + 1
				}
			}
		case ']':
			bracket = false
		case '/':
			if bracket {
				continue
			}
			t := token{kind: tRegex, text: l.src[start:i], line: l.line}
			l.pos = i + 1
			return t, nil
		}
	}
	return token{}, &syntaxError{l.line, "unterminated regexp"}
}

// Unescape reads the escapes of a string.
func Unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; {
		case strings.IndexByte("abfnrtv", c) >= 0:
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case '0' <= c && c <= '7':
			n := 0
			for end := i + 3; i < len(s) && i < end && '0' <= s[i] && s[i] <= '7'; i++ {
				n = n*8 + int(s[i]-'0')
			}
			i--
			b.WriteByte(byte(n))
		case c == 'x' && i+1 < len(s) && value.HexDigit(s[i+1]) >= 0:
			n := 0
			for end := i + 3; i+1 < len(s) && i+1 < end && value.HexDigit(s[i+1]) >= 0; i++ {
				n = n*16 + value.HexDigit(s[i+1])
			}
			b.WriteByte(byte(n))
		case c == '\n':
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
