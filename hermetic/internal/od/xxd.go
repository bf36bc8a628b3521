package od

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type xxdWant struct {
	columns, group                                   int
	plain, revert, include, bits, upper, little, dec bool
	skip, limit, offset                              int64
	name                                             string
}

// xxd takes its options as the real one: one word each, a value glued or next.
func xxd(w *gnu.Work) {
	x := xxdWant{columns: -1, group: -1, limit: -1}
	operands, ok := x.parse(w)
	if !ok {
		return
	}
	if len(operands) > 2 {
		w.Die(1, "too many operands")
		return
	}
	in := "-"
	if len(operands) > 0 {
		in = operands[0]
	}
	r, err := w.Open(in)
	if err != nil {
		w.Status = 2
		w.Complain("%s: %s", in, command.Reason(err))
		return
	}
	defer r.Close()
	if len(operands) == 2 && operands[1] != "-" {
		f, err := w.Create(operands[1], false)
		if err != nil {
			w.Status = 3
			w.Complain("%s: %s", operands[1], command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	x.defaults()
	switch {
	case x.revert:
		x.unhex(w, r)
	default:
		if _, err := io.CopyN(io.Discard, r, x.skip); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		var rest io.Reader = r
		if x.limit >= 0 {
			rest = io.LimitReader(r, x.limit)
		}
		x.dump(w, rest, in)
	}
}

func (x *xxdWant) defaults() {
	if x.columns < 0 {
		switch {
		case x.plain:
			x.columns = 30
		case x.include:
			x.columns = 12
		case x.bits:
			x.columns = 6
		default:
			x.columns = 16
		}
	}
	if x.columns == 0 {
		x.columns = 1 << 20
		if !x.plain {
			x.columns = 16
		}
	}
	if x.group < 0 {
		x.group = 2
		if x.bits {
			x.group = 1
		} else if x.little {
			x.group = 4
		}
	}
	if x.group == 0 {
		x.group = x.columns
	}
}

func (x *xxdWant) parse(w *gnu.Work) ([]string, bool) {
	var operands []string
	args := w.Args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if a == "-" || !strings.HasPrefix(a, "-") {
			operands = append(operands, a)
			continue
		}
		if a == "--" {
			return append(operands, args...), true
		}
		a = strings.TrimPrefix(a, "-")
		a = strings.TrimPrefix(a, "-")
		flags := map[string]*bool{"p": &x.plain, "ps": &x.plain, "postscript": &x.plain, "plain": &x.plain, "r": &x.revert, "revert": &x.revert, "i": &x.include, "include": &x.include, "b": &x.bits, "bits": &x.bits, "u": &x.upper, "e": &x.little, "d": &x.dec}
		if f := flags[a]; f != nil {
			*f = true
			continue
		}
		switch a {
		case "a", "autoskip", "C", "capitalize", "E", "EBCDIC":
			w.Refuse("-" + a)
			return nil, false
		case "h", "help":
			w.Out.WriteString("Usage:\n       xxd [options] [infile [outfile]]\n")
			return nil, false
		case "v", "version":
			w.Out.WriteString("xxd (egressd hermetic)\n")
			return nil, false
		case "rp", "pr":
			x.revert, x.plain = true, true
			continue
		}
		if a == "" || strings.IndexByte("cglson", a[0]) < 0 {
			w.Die(1, "unknown option -%s", a)
			return nil, false
		}
		value := strings.TrimLeft(a[1:], "abcdefghijklmnopqrstuvwxyz")
		if value == "" {
			if len(args) == 0 {
				w.Die(1, "option -%s needs a value", a)
				return nil, false
			}
			value, args = args[0], args[1:]
		}
		if a[0] == 'n' {
			x.name = value
			continue
		}
		n, err := strconv.ParseInt(strings.TrimPrefix(value, "+"), 0, 62)
		if err != nil || n < 0 {
			w.Die(1, "invalid number %s", value)
			return nil, false
		}
		switch a[0] {
		case 'c':
			x.columns = int(min(n, 256))
			if n > 256 && x.plain {
				x.columns = int(min(n, 1<<20))
			}
		case 'g':
			x.group = int(min(n, 256))
		case 'l':
			x.limit = n
		case 's':
			x.skip = n
		case 'o':
			x.offset = n
		}
	}
	return operands, true
}

func (x *xxdWant) dump(w *gnu.Work, r io.Reader, name string) {
	if x.include {
		x.source(w, r, name)
		return
	}
	at := x.skip + x.offset
	blocks(r, x.columns, func(b []byte) bool {
		if x.plain {
			text := hex.EncodeToString(b)
			if x.upper {
				text = strings.ToUpper(text)
			}
			_, err := w.Out.WriteString(text + "\n")
			return err == nil
		}
		x.line(w, at, b)
		at += int64(len(b))
		_, err := w.Out.Write(nil)
		return err == nil
	})
}

func (x *xxdWant) line(w *gnu.Work, at int64, b []byte) {
	if x.dec {
		fmt.Fprintf(w.Out, "%08d: ", at)
	} else {
		fmt.Fprintf(w.Out, "%08x: ", at)
	}
	for i := range x.columns {
		k := i
		if x.little {
			k = i/x.group*x.group + x.group - 1 - i%x.group
		}
		switch {
		case k >= len(b) && x.bits:
			w.Out.WriteString("        ")
		case k >= len(b):
			w.Out.WriteString("  ")
		case x.bits:
			fmt.Fprintf(w.Out, "%08b", b[k])
		case x.upper:
			fmt.Fprintf(w.Out, "%02X", b[k])
		default:
			fmt.Fprintf(w.Out, "%02x", b[k])
		}
		if (i+1)%x.group == 0 || i == x.columns-1 {
			w.Out.WriteByte(' ')
		}
	}
	w.Out.WriteByte(' ')
	if x.little && x.columns%x.group != 0 {
		w.Out.WriteByte(' ')
	}
	for _, c := range b {
		w.Out.WriteByte(show(c))
	}
	w.Out.WriteByte('\n')
}

// source is -i: a C array.
func (x *xxdWant) source(w *gnu.Work, r io.Reader, name string) {
	if x.name != "" {
		name = x.name
	}
	ident := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, path.Clean(name))
	if ident != "" && ident[0] >= '0' && ident[0] <= '9' {
		ident = "__" + ident
	}
	named := name != "-"
	if named {
		fmt.Fprintf(w.Out, "unsigned char %s[] = {\n", ident)
	}
	n := 0
	verb := "0x%02x"
	if x.upper {
		verb = "0X%02X"
	}
	blocks(r, x.columns, func(b []byte) bool {
		for i, c := range b {
			switch {
			case n == 0:
				w.Out.WriteString("  ")
			case i == 0:
				w.Out.WriteString(",\n  ")
			default:
				w.Out.WriteString(", ")
			}
			fmt.Fprintf(w.Out, verb, c)
			n++
		}
		_, err := w.Out.Write(nil)
		return err == nil
	})
	if n > 0 {
		w.Out.WriteByte('\n')
	}
	if named {
		fmt.Fprintf(w.Out, "};\nunsigned int %s_len = %d;\n", ident, n)
	}
}

// unhex turns a dump back into bytes.
func (x *xxdWant) unhex(w *gnu.Work, r io.Reader) {
	if x.plain {
		x.unhexPlain(w, bufio.NewReader(r))
		return
	}
	lines := w.Lines(r, '\n')
	at := int64(0)
	for {
		text, err := lines.Text()
		if err != nil {
			return
		}
		address, rest, ok := strings.Cut(string(text), ":")
		want, err := strconv.ParseInt(strings.TrimSpace(address), 16, 62)
		if !ok || err != nil {
			continue
		}
		if want -= x.skip; want > at && want-at < 1<<30 {
			_, _ = io.CopyN(w.Out, zeros{}, want-at)
			at = want
		}
		n := 0
		for n < x.columns && rest != "" {
			rest = strings.TrimPrefix(rest, " ")
			if len(rest) < 2 || rest[0] == ' ' {
				break
			}
			b, err := hex.DecodeString(rest[:2])
			if err != nil {
				break
			}
			if _, err := w.Out.Write(b); err != nil {
				return
			}
			rest = rest[2:]
			n++
			at++
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func (x *xxdWant) unhexPlain(w *gnu.Work, r *bufio.Reader) {
	var pair []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return
		}
		if strings.IndexByte("0123456789abcdefABCDEF", c) < 0 {
			if c != '\n' && c != ' ' && c != '\r' && c != '\t' {
				pair = pair[:0]
			}
			continue
		}
		if pair = append(pair, c); len(pair) == 2 {
			b, _ := hex.DecodeString(string(pair))
			if _, err := w.Out.Write(b); err != nil {
				return
			}
			pair = pair[:0]
		}
	}
}
