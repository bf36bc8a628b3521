package cut

import (
	"bytes"
	"errors"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

func paste(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "d:,delimiters: s,serial z,zero-terminated")
	if !ok {
		return
	}
	delims, serial, end := []string{"\t"}, false, byte('\n')
	for _, o := range sets {
		switch o.Name {
		case "delimiters":
			var fine bool
			if delims, fine = pasteDelimiters(o.Value); !fine {
				w.Die(1, "delimiter list ends with an unescaped backslash: %s", o.Value)
				return
			}
		case "serial":
			serial = true
		case "zero-terminated":
			end = 0
		}
	}
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	if serial {
		pasteSerial(w, operands, delims, end)
		return
	}
	pasteParallel(w, operands, delims, end)
}

// pasteDelimiters reads -d; an empty delimiter is "".
func pasteDelimiters(list string) ([]string, bool) {
	if list == "" {
		return []string{""}, true
	}
	var out []string
	for i := 0; i < len(list); i++ {
		if list[i] != '\\' {
			out = append(out, list[i:i+1])
			continue
		}
		if i++; i == len(list) {
			return nil, false
		}
		switch c := list[i]; c {
		case '0':
			out = append(out, "")
		default:
			at := bytes.IndexByte([]byte("bfnrtv"), c)
			if at >= 0 {
				c = "\b\f\n\r\t\v"[at]
			}
			out = append(out, string([]byte{c}))
		}
	}
	return out, true
}

func pasteSerial(w *gnu.Work, operands, delims []string, end byte) {
	w.EachFile(operands, func(_ string, r io.Reader) error {
		lines := w.Lines(r, end)
		for n := 0; ; n++ {
			text, err := lines.Text()
			if err != nil {
				w.Out.WriteByte(end)
				return err
			}
			if n > 0 {
				w.Out.WriteString(delims[(n-1)%len(delims)])
			}
			if _, err := w.Out.Write(text); err != nil {
				return gnu.Stop()
			}
		}
	})
}

func pasteParallel(w *gnu.Work, operands, delims []string, end byte) {
	inputs := make([]*gnu.Lines, len(operands))
	var stdin *gnu.Lines
	for i, name := range operands {
		if name == "-" && stdin != nil {
			inputs[i] = stdin
			continue
		}
		r, err := w.Open(name)
		if err != nil {
			w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
			return
		}
		defer r.Close()
		inputs[i] = w.Lines(r, end)
		if name == "-" {
			stdin = inputs[i]
		}
	}
	for {
		var row []byte
		alive := false
		for i, in := range inputs {
			if i > 0 {
				row = append(row, delims[(i-1)%len(delims)]...)
			}
			if in == nil {
				continue
			}
			text, err := in.Text()
			switch {
			case err == nil:
				alive = true
				row = append(row, text...)
			case !errors.Is(err, io.EOF):
				if w.Ctx.Err() != nil {
					return
				}
				w.Fault("%s: %s", gnu.QuoteName(operands[i]), command.Reason(err))
				fallthrough
			default:
				inputs[i] = nil
			}
		}
		if !alive {
			return
		}
		if _, err := w.Out.Write(append(row, end)); err != nil {
			return
		}
	}
}
