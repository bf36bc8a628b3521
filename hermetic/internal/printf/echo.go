package printf

import (
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/gnu"
)

// echo is the command and not the builtin; -n, -e and -E only.
func echo(w *gnu.Work) {
	args := w.Args[1:]
	newline, escapes := true, false
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		w.Options("[SHORT-OPTION]... [STRING]...", "")
		return
	}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			default:
				escapes = false
			}
		}
		args = args[1:]
	}
	for i, a := range args {
		if i > 0 {
			w.Out.WriteByte(' ')
		}
		if !escapes {
			w.Out.WriteString(a)
			continue
		}
		text, stop := unescapeEcho(a)
		w.Out.WriteString(text)
		if stop {
			return
		}
	}
	if newline {
		w.Out.WriteByte('\n')
	}
}

// unescapeEcho undoes backslashes as echo -e and %b do; stop: there was a \c.
func unescapeEcho(s string) (text string, stop bool) {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'c':
			return string(b), true
		case '0', '1', '2', '3', '4', '5', '6', '7':
			if c == '0' {
				i++
			}
			v, n := digitsOf(s[i:], 8, 3)
			b = append(b, byte(v))
			i += n - 1
		case 'x':
			v, n := digitsOf(s[i+1:], 16, 2)
			if n == 0 {
				b = append(b, '\\', 'x')
			} else {
				b = append(b, byte(v))
			}
			i += n
		default:
			if at := strings.IndexByte(`abefnrtv\`, c); at >= 0 {
				b = append(b, "\a\b\x1b\f\n\r\t\v\\"[at])
			} else {
				b = append(b, '\\', c)
			}
		}
	}
	return string(b), false
}

// digitsOf reads up to most digits.
func digitsOf(s string, base, most int) (v, n int) {
	for n < len(s) && n < most {
		d := strings.IndexByte("0123456789abcdef", s[n]|0x20)
		if s[n] >= '0' && s[n] <= '9' {
			d = int(s[n] - '0')
		} else if s[n]|0x20 < 'a' {
			d = -1
		}
		if d < 0 || d >= base {
			break
		}
		v = v*base + d
		n++
	}
	return v, n
}

// unescapePrintf undoes one escape at the beginning of s in a format; n is its
// length. A \c ends the output.
func unescapePrintf(w *gnu.Work, s string) (text []byte, n int, stop, ok bool) {
	if len(s) < 2 {
		return []byte{'\\'}, 1, false, true
	}
	switch c := s[1]; c {
	case 'c':
		return nil, 2, true, true
	case 'x':
		v, k := digitsOf(s[2:], 16, 2)
		if k == 0 {
			w.Die(1, "missing hexadecimal number in escape")
			return nil, 0, true, false
		}
		return []byte{byte(v)}, 2 + k, false, true
	case 'u', 'U':
		want := map[byte]int{'u': 4, 'U': 8}[c]
		v, k := digitsOf(s[2:], 16, want)
		if k < want {
			w.Die(1, "missing hexadecimal number in escape")
			return nil, 0, true, false
		}
		return utf8.AppendRune(nil, rune(v)), 2 + k, false, true
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v, k := digitsOf(s[1:], 8, 3)
		return []byte{byte(v)}, 1 + k, false, true
	default:
		if at := strings.IndexByte(`abefnrtv\"`, c); at >= 0 {
			return []byte{"\a\b\x1b\f\n\r\t\v\\\""[at]}, 2, false, true
		}
		return []byte{'\\', c}, 2, false, true
	}
}
