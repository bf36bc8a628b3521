package xargs

import (
	"errors"
	"io"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// items cuts the input of xargs up.
type items struct {
	x     *xargsCall
	lines *gnu.Lines
	rest  []byte // of the line that was begun
	begun bool
	ended bool
}

// next reports one item, and whether its line ends with it. The error at the
// end is io.EOF.
func (in *items) next() (item string, endOfLine bool, err error) {
	if in.ended {
		return "", false, io.EOF
	}
	if in.x.delim >= 0 {
		b, err := in.lines.Text()
		return string(b), true, err
	}
	for {
		if !in.begun {
			line, err := in.lines.Next()
			if err != nil {
				return "", false, err
			}
			in.rest, in.begun = append(in.rest[:0], line...), true
		}
		item, ok, err := in.word()
		if err != nil {
			return "", false, err
		}
		if !ok {
			in.begun = false
			continue
		}
		if in.x.eof != "" && item == in.x.eof {
			in.ended = true
			return "", false, io.EOF
		}
		return item, !in.begun, nil
	}
}

// word takes the next word of the line; with -I it is the whole line.
func (in *items) word() (word string, ok bool, err error) {
	s := in.rest
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || in.x.replace == "" && (s[i] == '\v' || s[i] == '\f' || s[i] == '\r')) {
		i++
	}
	if i == len(s) {
		return "", false, nil
	}
	var b strings.Builder
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\n':
			in.rest, in.begun = nil, false
			return b.String(), true, nil
		case in.x.replace == "" && (c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'):
			in.endWord(s, i)
			return b.String(), true, nil
		case c == '\\':
			if i+1 == len(s) {
				break
			}
			i++
			b.WriteByte(s[i])
			if s[i] == '\n' && i+1 == len(s) {
				if s, i, err = in.more(s, i); err != nil {
					return "", false, err
				}
			}
		case c == '\'' || c == '"':
			end := strings.IndexByte(string(s[i+1:]), c)
			if end < 0 || strings.IndexByte(string(s[i+1:i+1+end]), '\n') >= 0 {
				name := map[byte]string{'\'': "single", '"': "double"}[c]
				return "", false, errors.New("unmatched " + name + " quote; by default quotes are special to xargs unless you use the -0 option")
			}
			b.Write(s[i+1 : i+1+end])
			i += end + 1
		default:
			b.WriteByte(c)
		}
	}
	in.rest, in.begun = nil, false
	return b.String(), true, nil
}

// endWord ends a word at the blank s[i]. The line ends with it when nothing
// but blanks follows, unless lines are counted: then a blank at the end goes on
// with the next line.
func (in *items) endWord(s []byte, i int) {
	rest := s[i+1:]
	if strings.Trim(string(rest), " \t\v\f\r\n") != "" {
		in.rest = rest
		return
	}
	if in.x.lines > 0 {
		line, err := in.lines.Next()
		if err == nil {
			in.rest = append([]byte(" "), line...)
			return
		}
	}
	in.rest, in.begun = nil, false
}

// more joins the line after an escaped newline.
func (in *items) more(s []byte, i int) ([]byte, int, error) {
	line, err := in.lines.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return s, i, err
	}
	return append(append([]byte{}, s...), line...), i, nil
}
