package text

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"syscall"
	"unicode/utf8"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/gnu"
)

func tac(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "b,before r,regex s:,separator:")
	if !ok {
		return
	}
	before, sep := false, "\n"
	for _, o := range sets {
		switch o.Name {
		case "before":
			before = true
		case "separator":
			if sep = o.Value; sep == "" {
				sep = "\x00"
			}
		case "regex":
			w.Refuse("--regex")
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
		tacText(w.Out, all, []byte(sep), before)
	}
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
