package iconv

import (
	"io"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// iconv knows UTF-8, ISO-8859-1 and ASCII.
func iconv(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION...] [FILE...]", "f:,from-code: t:,to-code: l,list c o:,output: s,silent ,verbose")
	if !ok {
		return
	}
	from, to, drop, out := "UTF-8", "UTF-8", false, ""
	for _, o := range sets {
		switch o.Name {
		case "from-code":
			from = o.Value
		case "to-code":
			to = o.Value
		case "c":
			drop = true
		case "output":
			out = o.Value
		case "list":
			w.Out.WriteString("ASCII//\nISO-8859-1//\nUTF-8//\n")
			return
		}
	}
	to, mode, _ := strings.Cut(to, "//")
	src, ok1 := charset(from)
	dst, ok2 := charset(to)
	if !ok1 || !ok2 {
		bad := from
		if ok1 {
			bad = to
		}
		w.Die(1, "conversion from `%s' is not supported here", bad)
		return
	}
	if out != "" {
		f, err := w.Create(out, false)
		if err != nil {
			w.Die(1, "unable to open output file: %s", command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	w.EachFile(operands, func(_ string, r io.Reader) error {
		all, err := w.All(r)
		if err != nil {
			return err
		}
		if at := convert(w, all, src, dst, drop || strings.Contains(mode, "IGNORE"), strings.Contains(mode, "TRANSLIT")); at >= 0 {
			w.Die(1, "illegal input sequence at position %d", at)
			return gnu.Stop()
		}
		return nil
	})
}

func charset(name string) (limit rune, ok bool) {
	switch strings.ToUpper(strings.TrimSuffix(name, "//")) {
	case "UTF-8", "UTF8", "":
		return utf8.MaxRune, true
	case "ISO-8859-1", "ISO8859-1", "LATIN1", "ISO_8859-1", "L1", "8859_1":
		return 0xff, true
	case "ASCII", "US-ASCII", "ANSI_X3.4-1968", "646":
		return 0x7f, true
	}
	return 0, false
}

// convert writes b in another charset; it reports where that fails, or -1.
func convert(w *gnu.Work, b []byte, src, dst rune, drop, translit bool) int {
	for i := 0; i < len(b); {
		r, n := rune(b[i]), 1
		bad := r > src
		if src == utf8.MaxRune {
			r, n = utf8.DecodeRune(b[i:])
			bad = r == utf8.RuneError && n == 1
		}
		switch {
		case !bad && r <= dst && dst == utf8.MaxRune:
			w.Out.WriteRune(r)
		case !bad && r <= dst:
			w.Out.WriteByte(byte(r))
		case !bad && translit:
			w.Out.WriteByte('?')
		case !drop:
			return i
		default:
			w.Status = 1
		}
		i += n
	}
	return -1
}
