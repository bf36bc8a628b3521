package cut

import (
	"bytes"
	"io"

	"egressd/hermetic/internal/gnu"
)

type cutter struct {
	spans    []Span
	fields   bool
	delim    byte
	out      []byte // between fields; between byte ranges only when given
	outGiven bool
	only     bool
	end      byte
}

func cut(w *gnu.Work) {
	sets, operands, ok := w.Options("OPTION... [FILE]...", "b:,bytes: c:,characters: d:,delimiter: f:,fields: n ,complement s,only-delimited ,output-delimiter: z,zero-terminated")
	if !ok {
		return
	}
	c := cutter{delim: '\t', end: '\n'}
	list, lists, delimGiven, invert := "", 0, false, false
	for _, o := range sets {
		switch o.Name {
		case "bytes", "characters", "fields":
			list, c.fields = o.Value, o.Name == "fields"
			lists++
		case "delimiter":
			if len(o.Value) > 1 {
				w.TryHelp("the delimiter must be a single character")
				return
			}
			delimGiven, c.delim = true, append([]byte(o.Value), 0)[0]
		case "complement":
			invert = true
		case "only-delimited":
			c.only = true
		case "output-delimiter":
			c.outGiven, c.out = true, []byte(o.Value)
			if o.Value == "" {
				c.out = []byte{0}
			}
		case "zero-terminated":
			c.end = 0
		}
	}
	switch {
	case lists == 0:
		w.TryHelp("you must specify a list of bytes, characters, or fields")
		return
	case lists > 1:
		w.TryHelp("only one list may be specified")
		return
	case delimGiven && !c.fields:
		w.TryHelp("an input delimiter may be specified only when operating on fields")
		return
	case c.only && !c.fields:
		w.TryHelp("suppressing non-delimited lines makes sense\n\tonly when operating on fields")
		return
	}
	if c.spans = Spans(w, list, c.fields); c.spans == nil {
		return
	}
	if invert {
		c.spans = complement(c.spans)
	}
	if !c.outGiven {
		c.out = []byte{c.delim}
	}
	w.EachFile(operands, func(_ string, r io.Reader) error { return c.file(w, r) })
}

func (c *cutter) file(w *gnu.Work, r io.Reader) error {
	if c.fields && c.delim == c.end {
		return c.wholeFile(w, r)
	}
	lines := w.Lines(r, c.end)
	var out []byte
	for {
		text, err := lines.Text()
		if err != nil {
			return err
		}
		if c.fields {
			if !bytes.Contains(text, []byte{c.delim}) {
				if c.only {
					continue
				}
				out = append(out[:0], text...)
			} else {
				out = c.pickFields(out[:0], text)
			}
		} else {
			out = c.pickBytes(out[:0], text)
		}
		if _, err := w.Out.Write(append(out, c.end)); err != nil {
			return gnu.Stop()
		}
	}
}

// wholeFile cuts lines themselves out of a file: cut -d '\n' -f 2.
func (c *cutter) wholeFile(w *gnu.Work, r io.Reader) error {
	all, err := w.All(r)
	if err != nil || len(all) == 0 {
		return err
	}
	all = bytes.TrimSuffix(all, []byte{c.end})
	w.Out.Write(c.pickFields(nil, all))
	return w.Out.WriteByte(c.end)
}

func (c *cutter) pickFields(out, text []byte) []byte {
	at, first := 0, true
	for n := 1; ; n++ {
		for at < len(c.spans) && c.spans[at].Hi < n {
			at++
		}
		if at == len(c.spans) {
			return out
		}
		field, rest, more := bytes.Cut(text, []byte{c.delim})
		if n >= c.spans[at].Lo {
			if !first {
				out = append(out, c.out...)
			}
			first = false
			out = append(out, field...)
		}
		if !more {
			return out
		}
		text = rest
	}
}

func (c *cutter) pickBytes(out, text []byte) []byte {
	for i, s := range c.spans {
		if s.Lo > len(text) {
			break
		}
		if i > 0 && c.outGiven {
			out = append(out, c.out...)
		}
		out = append(out, text[s.Lo-1:min(s.Hi, len(text))]...)
	}
	return out
}
