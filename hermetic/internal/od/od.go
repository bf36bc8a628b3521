package od

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/printf"
)

// odType is one -t.
type odType struct {
	kind  byte // a c d o u x f
	size  int
	ascii bool // z
	width int
	pad   int
}

type odWant struct {
	types       []odType
	base        byte
	skip, limit int64
	width       int
	verbose     bool
	order       binary.ByteOrder
}

func od(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "A:,address-radix: ,endian: j:,skip-bytes: N:,read-bytes: S:: ,strings:: t:,format: v,output-duplicates w::,width:: a b c d f h i l o s x ,traditional")
	if !ok {
		return
	}
	d := odWant{base: 'o', limit: -1, order: binary.LittleEndian}
	for _, o := range sets {
		if !d.set(w, o) {
			return
		}
	}
	if len(d.types) == 0 {
		d.addTypes(w, "o2")
	}
	operands = d.offset(sets, operands)
	d.layout(w)
	d.run(w, operands)
}

var odShort = map[string]string{"a": "a", "b": "o1", "c": "c", "d": "u2", "f": "fF", "h": "x2", "i": "dI", "l": "dL", "o": "o2", "s": "d2", "x": "x2"}

func (d *odWant) set(w *gnu.Work, o command.Set) bool {
	count := func(to *int64, option string) bool {
		n, err := odNumber(o.Value)
		if err != nil {
			w.Die(1, "invalid %s argument %s", option, gnu.QuoteShell(o.Value))
			return false
		}
		*to = n
		return true
	}
	if t := odShort[o.Name]; t != "" {
		return d.addTypes(w, t)
	}
	switch o.Name {
	case "address-radix":
		if d.base = append([]byte(o.Value), 0)[0]; strings.IndexByte("doxn", d.base) < 0 {
			w.Die(1, "invalid output address radix '%s'; it must be one character from [doxn]", string(d.base))
			return false
		}
	case "endian":
		switch {
		case o.Value != "" && strings.HasPrefix("big", o.Value):
			d.order = binary.BigEndian
		case o.Value == "" || !strings.HasPrefix("little", o.Value):
			w.TryHelp("invalid argument %s for ‘--endian’\nValid arguments are:\n  - ‘little’\n  - ‘big’", gnu.Quote(o.Value))
			return false
		}
	case "skip-bytes":
		return count(&d.skip, "-j")
	case "read-bytes":
		return count(&d.limit, "-N")
	case "S", "strings", "traditional":
		w.Refuse("-" + o.Name)
		return false
	case "format":
		return d.addTypes(w, o.Value)
	case "output-duplicates":
		d.verbose = true
	case "width":
		if d.width = 32; o.Given {
			n, err := odNumber(o.Value)
			if err != nil || n == 0 || n > 1<<20 {
				w.Die(1, "invalid -w argument %s", gnu.Quote(o.Value))
				return false
			}
			d.width = int(n)
		}
	}
	return true
}

// odNumber is a count, octal or hexadecimal as in C, with a multiplier.
func odNumber(s string) (int64, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if strings.HasPrefix(s, "0") && digits > 1 || strings.HasPrefix(s, "0x") {
		if v, err := strconv.ParseInt(s, 0, 63); err == nil {
			return v, nil
		}
	}
	return gnu.Size(s, "bEGKkMmPTYZ0")
}

// offset takes "+10" or a number after a file for how much to skip.
func (d *odWant) offset(sets []command.Set, operands []string) []string {
	if n := len(operands); n > 0 && n < 3 {
		plain := !slices.ContainsFunc(sets, func(o command.Set) bool { return len(o.Name) > 1 && o.Name != "output-duplicates" })
		last := operands[n-1]
		if plain && (strings.HasPrefix(last, "+") || n == 2 && last[0] >= '0' && last[0] <= '9') {
			text := strings.TrimPrefix(last, "+")
			base := 8
			if strings.HasSuffix(text, ".") {
				text, base = strings.TrimSuffix(text, "."), 10
			} else if strings.HasPrefix(text, "0x") {
				text, base = text[2:], 16
			}
			if v, err := strconv.ParseInt(text, base, 62); err == nil {
				d.skip = v
				return operands[:n-1]
			}
		}
	}
	return operands
}

// addTypes reads "x1z", "d4o2" and so on.
func (d *odWant) addTypes(w *gnu.Work, spec string) bool {
	bad := func(format string, args ...any) bool {
		w.Die(1, format, args...)
		return false
	}
	for s := spec; s != ""; {
		t := odType{kind: s[0], size: 1, width: 3}
		s = s[1:]
		switch t.kind {
		case 'a', 'c':
		case 'd', 'o', 'u', 'x', 'f':
			n, rest, ok := odSize(s, t.kind == 'f')
			if !ok {
				if t.kind == 'f' {
					return bad("invalid type string %s;\nthis system doesn't provide a %d-byte floating point type", gnu.Quote(spec), n)
				}
				return bad("invalid type string %s;\nthis system doesn't provide a %d-byte integral type", gnu.Quote(spec), n)
			}
			t.size, s = n, rest
			t.width = map[byte][9]int{
				'o': {1: 3, 2: 6, 4: 11, 8: 22}, 'd': {1: 4, 2: 6, 4: 11, 8: 20}, 'u': {1: 3, 2: 5, 4: 10, 8: 20},
				'x': {1: 2, 2: 4, 4: 8, 8: 16}, 'f': {4: 15, 8: 24},
			}[t.kind][n]
		default:
			return bad("invalid character '%c' in type string %s", t.kind, gnu.Quote(spec))
		}
		if strings.HasPrefix(s, "z") {
			t.ascii, s = true, s[1:]
		}
		d.types = append(d.types, t)
	}
	return true
}

func odSize(s string, float bool) (n int, rest string, ok bool) {
	if float {
		n = 8
	} else {
		n = 4
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	switch {
	case digits > 0:
		n, _ = strconv.Atoi(s[:digits])
		rest = s[digits:]
	case s != "" && !float && strings.IndexByte("CSIL", s[0]) >= 0:
		n, rest = map[byte]int{'C': 1, 'S': 2, 'I': 4, 'L': 8}[s[0]], s[1:]
	case s != "" && float && strings.IndexByte("FD", s[0]) >= 0:
		n, rest = map[byte]int{'F': 4, 'D': 8}[s[0]], s[1:]
	default:
		rest = s
	}
	if float {
		return n, rest, n == 4 || n == 8
	}
	return n, rest, n == 1 || n == 2 || n == 4 || n == 8
}

// layout finds how wide fields are, so that those of all types line up.
func (d *odWant) layout(w *gnu.Work) {
	unit := 1
	for _, t := range d.types {
		unit = max(unit, t.size)
	}
	switch {
	case d.width == 0:
		d.width = 16
	case d.width%unit != 0:
		w.Complain("warning: invalid width %d; using %d instead", d.width, unit)
		d.width = unit
	}
	widest := 0
	for _, t := range d.types {
		widest = max(widest, (t.width+1)*(d.width/t.size))
	}
	for i, t := range d.types {
		d.types[i].pad = widest - t.width*(d.width/t.size)
	}
}

func (d *odWant) address(at int64) string {
	switch d.base {
	case 'n':
		return ""
	case 'd':
		return fmt.Sprintf("%07d", at)
	case 'x':
		return fmt.Sprintf("%06x", at)
	}
	return fmt.Sprintf("%07o", at)
}

func (d *odWant) run(w *gnu.Work, operands []string) {
	in := newInput(w, operands, 0, -1)
	defer in.Close()
	at := d.skip
	if skipped := skipBytes(in, d.skip); skipped < d.skip {
		w.Die(1, "cannot skip past end of combined input")
		return
	}
	in.left = d.limit
	var prev []byte
	starred := false
	blocks(in, d.width, func(b []byte) bool {
		if !d.verbose && len(b) == d.width && prev != nil && bytes.Equal(b, prev) {
			if !starred {
				w.Out.WriteString("*\n")
			}
			starred = true
		} else {
			starred = false
			d.block(w, at, b)
			prev = append(prev[:0], b...)
		}
		at += int64(len(b))
		_, err := w.Out.Write(nil)
		return err == nil
	})
	if d.base != 'n' && in.opened {
		w.Out.WriteString(d.address(at) + "\n")
	}
}

func skipBytes(in *input, n int64) int64 {
	buf, done := make([]byte, 32<<10), int64(0)
	for done < n {
		k, err := in.Read(buf[:min(int64(len(buf)), n-done)])
		if done += int64(k); err != nil {
			break
		}
	}
	return done
}

// block writes one line for each type.
func (d *odWant) block(w *gnu.Work, at int64, b []byte) {
	whole := make([]byte, d.width+8)
	copy(whole, b)
	for i, t := range d.types {
		address := d.address(at)
		if i > 0 {
			address = strings.Repeat(" ", len(address))
		}
		w.Out.WriteString(address)
		fields := d.width / t.size
		used := (len(b) + t.size - 1) / t.size
		left := t.pad
		for k := range used {
			next := t.pad * (fields - k - 1) / fields
			text := d.field(t, whole[k*t.size:])
			fmt.Fprintf(w.Out, "%*s", left-next+t.width, text)
			left = next
		}
		if t.ascii {
			blank := fields - used
			fmt.Fprintf(w.Out, "%*s  >", blank*t.width+left, "")
			for _, c := range b {
				w.Out.WriteByte(show(c))
			}
			w.Out.WriteByte('<')
		}
		w.Out.WriteByte('\n')
	}
}

var odNames = strings.Fields("nul soh stx etx eot enq ack bel bs ht nl vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub esc fs gs rs us sp")

func (d *odWant) field(t odType, b []byte) string {
	switch t.kind {
	case 'a':
		c := b[0] & 0x7f
		switch {
		case int(c) < len(odNames):
			return odNames[c]
		case c == 0x7f:
			return "del"
		}
		return string(rune(c))
	case 'c':
		if at := bytes.IndexByte([]byte("\x00\a\b\f\n\r\t\v"), b[0]); at >= 0 {
			return `\` + "0abfnrtv"[at:at+1]
		}
		if b[0] >= 0x20 && b[0] < 0x7f {
			return string(rune(b[0]))
		}
		return fmt.Sprintf("%03o", b[0])
	}
	var n uint64
	switch t.size {
	case 1:
		n = uint64(b[0])
	case 2:
		n = uint64(d.order.Uint16(b))
	case 4:
		n = uint64(d.order.Uint32(b))
	case 8:
		n = d.order.Uint64(b)
	}
	switch t.kind {
	case 'o':
		return fmt.Sprintf("%0*o", t.width, n)
	case 'x':
		return fmt.Sprintf("%0*x", t.width, n)
	case 'u':
		return strconv.FormatUint(n, 10)
	case 'd':
		shift := 64 - 8*t.size
		return strconv.FormatInt(int64(n<<shift)>>shift, 10)
	}
	if t.size == 4 {
		return shortFloat(float64(math.Float32frombits(uint32(n))), 6, 32)
	}
	return shortFloat(math.Float64frombits(n), 15, 64)
}

// shortFloat is the shortest %g that reads as the same number, of at least so
// many digits.
func shortFloat(f float64, digits, bits int) string {
	if math.Abs(f) < 1e-300 && bits == 64 || math.Abs(f) < 1e-37 && bits == 32 {
		digits = 1
	}
	for ; ; digits++ {
		s := printf.Directive{Prec: digits, Verb: 'g'}.Float(gnu.NewFloat(f))
		if v, err := strconv.ParseFloat(s, bits); digits >= 17 || err == nil && v == f || errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
			return s
		}
	}
}
