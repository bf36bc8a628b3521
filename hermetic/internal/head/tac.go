package head

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
)

func tac(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "b,before r,regex s:,separator:")
	if !ok {
		return
	}
	before, sep, isRegex := false, "\n", false
	for _, o := range sets {
		switch o.Name {
		case "before":
			before = true
		case "separator":
			if sep = o.Value; sep == "" {
				sep = "\x00"
			}
		case "regex":
			isRegex = true
		}
	}
	var re *regex.Regexp
	if isRegex {
		var err error
		if re, err = regex.Compile(emacs(sep), regex.Options{Syntax: regex.Basic, Lines: true, Steps: w.Budget.Steps}); err != nil {
			w.Die(1, "%s", err)
			return
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Fault("failed to open %s for reading: %s", gnu.QuoteShell(name), command.Reason(err))
			continue
		}
		all, err := w.All(r)
		_ = r.Close()
		if err != nil {
			if errors.Is(err, syscall.EISDIR) {
				err = syscall.EINVAL // what it gets from seeking in a directory
			}
			w.Fault("%s: read error: %s", gnu.QuoteName(name), command.Reason(err))
			continue
		}
		if re == nil {
			tacText(w.Out, all, []byte(sep), before)
		} else if err := tacRegex(w, all, re, before); err != nil {
			w.Fault("%s", err)
			return
		}
	}
}

// emacs turns an expression as tac reads it, where + and ? stand for themselves
// with a backslash alone, into a basic one.
func emacs(expr string) string {
	var b strings.Builder
	for i, inside := 0, false; i < len(expr); i++ {
		c := expr[i]
		switch {
		case inside:
			inside = c != ']' || expr[i-1] == '[' || expr[i-1] == '^' && expr[i-2] == '['
		case c == '[':
			inside = true
		case c == '+' || c == '?':
			b.WriteByte('\\')
		case c == '\\' && i+1 < len(expr):
			i++
			if c = expr[i]; c != '+' && c != '?' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// tacRegex is tacText with an expression, which is tried from the end on: a
// match is as long as it can be from where it is found first, and no longer
// than to the one found before.
func tacRegex(w *gnu.Work, all []byte, re *regex.Regexp, before bool) error {
	past := len(all) // the end of what is not written yet
	for at, limit, first := len(all)-1, len(all), true; at >= 0; at-- {
		loc, err := re.Find(all[:limit], at, 0)
		if err != nil {
			return err
		}
		if loc == nil || loc[0] != at || loc[1] == at {
			continue
		}
		limit = at
		switch {
		case before:
			w.Out.Write(all[at:past])
			past = at
		case first && loc[1] == past:
		default:
			w.Out.Write(all[loc[1]:past])
			past = loc[1]
		}
		first = false
		if err := w.Ctx.Err(); err != nil {
			return err
		}
	}
	_, err := w.Out.Write(all[:past])
	return err
}

func tacText(out io.Writer, all, sep []byte, before bool) {
	for len(all) > 0 {
		end := len(all)
		if before {
			at := max(0, bytes.LastIndex(all, sep))
			out.Write(all[at:])
			all = all[:at]
			continue
		}
		from := end
		if bytes.HasSuffix(all, sep) {
			from -= len(sep)
		}
		at := bytes.LastIndex(all[:from], sep)
		if at >= 0 {
			at += len(sep)
		}
		at = max(0, at)
		if _, err := out.Write(all[at:]); err != nil {
			return
		}
		all = all[:at]
	}
}

func rev(w *gnu.Work) {
	sets, operands, ok := w.Options("[options] [<file> ...]", "0,zero")
	if !ok {
		return
	}
	delim := byte('\n')
	if len(sets) > 0 {
		delim = 0
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Fault("cannot open %s: %s", name, command.Reason(err))
			continue
		}
		lines := w.Lines(r, delim)
		for {
			line, err := lines.Next()
			if err != nil {
				break
			}
			text, ended := bytes.CutSuffix(line, []byte{delim})
			w.Out.Write(reverseRunes(text))
			if ended {
				w.Out.WriteByte(delim)
			}
		}
		_ = r.Close()
	}
}

// reverseRunes turns characters around; bytes that are none stay whole.
func reverseRunes(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		_, n := utf8.DecodeLastRune(text)
		out = append(out, text[len(text)-n:]...)
		text = text[:len(text)-n]
	}
	return slices.Clip(out)
}
