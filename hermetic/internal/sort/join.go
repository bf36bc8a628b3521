package sort

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type joiner struct {
	key    [2]int // from 0
	tab    int    // -1: blanks
	fold   bool
	extra  [2]bool // -a
	pairs  bool
	empty  string
	list   []joinField
	auto   bool
	width  [2]int // of -o auto
	end    byte
	header bool
	check  int // as comm's

	seen  bool
	named [2]bool
}

// joinField is one of -o: 0 is the key, else file 1 or 2.
type joinField struct{ file, field int }

// joinLine is a line with its fields.
type joinLine struct {
	fields [][]byte
	text   []byte
}

// joinInput is one file, with the next line looked at.
type joinInput struct {
	lines *gnu.Lines
	next  *joinLine
	n     int
	name  string
}

func join(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... FILE1 FILE2", "a: e: i,ignore-case j: 1: 2: o: t: v: ,check-order ,nocheck-order ,header z,zero-terminated")
	if !ok {
		return
	}
	j := joiner{tab: -1, end: '\n', pairs: true}
	// -o a,b c: further lists may follow as operands before the last two.
	for _, o := range sets {
		if !j.set(w, o) {
			return
		}
	}
	for len(operands) > 2 && j.list != nil && j.addList(w, operands[0], false) {
		operands = operands[1:]
	}
	switch {
	case len(operands) == 0:
		w.TryHelp("missing operand")
		return
	case len(operands) == 1:
		w.TryHelp("missing operand after %s", gnu.Quote(operands[0]))
		return
	case w.Extra(operands, 2):
		return
	case operands[0] == "-" && operands[1] == "-":
		w.Die(1, "both files cannot be standard input")
		return
	}
	var in [2]*joinInput
	for i, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
			return
		}
		defer r.Close()
		in[i] = &joinInput{lines: w.Lines(r, j.end), name: name}
	}
	j.run(w, in)
}

func (j *joiner) set(w *gnu.Work, o command.Set) bool {
	field := func(to ...*int) bool {
		n, err := strconv.ParseUint(o.Value, 10, 31)
		if err != nil || n == 0 {
			w.Die(1, "invalid field number: %s", gnu.Quote(o.Value))
			return false
		}
		for _, t := range to {
			*t = int(n) - 1
		}
		return true
	}
	switch o.Name {
	case "a", "v":
		n, err := strconv.Atoi(o.Value)
		if err != nil {
			w.Die(1, "invalid file number: %s", gnu.Quote(o.Value))
			return false
		}
		if n != 1 && n != 2 {
			w.Die(1, "invalid field number: %s", gnu.Quote(o.Value))
			return false
		}
		j.extra[n-1] = true
		j.pairs = j.pairs && o.Name == "a"
	case "e":
		j.empty = o.Value
	case "ignore-case":
		j.fold = true
	case "j":
		return field(&j.key[0], &j.key[1])
	case "1":
		return field(&j.key[0])
	case "2":
		return field(&j.key[1])
	case "o":
		if o.Value == "auto" {
			j.auto = true
			return true
		}
		return j.addList(w, o.Value, true)
	case "t":
		switch {
		case o.Value == "":
			j.tab = '\n'
		case o.Value == `\0`:
			j.tab = 0
		case len(o.Value) > 1:
			w.Die(1, "multi-character tab %s", gnu.Quote(o.Value))
			return false
		default:
			j.tab = int(o.Value[0])
		}
	case "check-order":
		j.check = 1
	case "nocheck-order":
		j.check = -1
	case "header":
		j.header = true
	case "zero-terminated":
		j.end = 0
	}
	return true
}

// addList reads a list of -o; loud: complain when it is none.
func (j *joiner) addList(w *gnu.Work, list string, loud bool) bool {
	var out []joinField
	for _, spec := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \t", r) }) {
		if spec == "0" {
			out = append(out, joinField{})
			continue
		}
		file, field, _ := strings.Cut(spec, ".")
		n, err := strconv.ParseUint(field, 10, 31)
		if file != "1" && file != "2" {
			if loud {
				w.Die(1, "invalid file number in field spec: %s", gnu.Quote(spec))
			}
			return false
		}
		if err != nil || n == 0 {
			if loud {
				w.Die(1, "invalid field number: %s", gnu.Quote(field))
			}
			return false
		}
		out = append(out, joinField{int(file[0] - '0'), int(n)})
	}
	j.list = append(j.list, out...)
	return true
}

// run merges the two files by key.
func (j *joiner) run(w *gnu.Work, in [2]*joinInput) {
	for i := range in {
		if !j.advance(w, in, i) {
			return
		}
		if j.auto && in[i].next != nil {
			j.width[i] = len(in[i].next.fields)
		}
	}
	if j.header && (in[0].next != nil || in[1].next != nil) {
		j.write(w, in[0].next, in[1].next)
		for i := range in {
			if in[i].next != nil {
				in[i].n = -1 // the heading is in no order
				if !j.advance(w, in, i) {
					return
				}
			}
		}
	}
	for in[0].next != nil && in[1].next != nil {
		d := j.compare(in[0].next, in[1].next)
		if d == 0 {
			if !j.matches(w, in) {
				return
			}
			continue
		}
		j.seen = true
		i := 0
		if d > 0 {
			i = 1
		}
		if !j.alone(w, in, i) {
			return
		}
	}
	for i := range in {
		for in[i].next != nil {
			j.seen = j.seen || in[1-i].next != nil
			if !j.alone(w, in, i) {
				return
			}
		}
	}
	if j.named[0] || j.named[1] {
		w.Fault("input is not in sorted order")
	}
}

// alone writes a line without a partner where it is wanted, and goes on.
func (j *joiner) alone(w *gnu.Work, in [2]*joinInput, i int) bool {
	if j.extra[i] {
		pair := [2]*joinLine{}
		pair[i] = in[i].next
		if !j.write(w, pair[0], pair[1]) {
			return false
		}
	}
	return j.advance(w, in, i)
}

// matches writes all pairs of the lines with one key.
func (j *joiner) matches(w *gnu.Work, in [2]*joinInput) bool {
	var groups [2][]*joinLine
	size := int64(0)
	for i := range in {
		for first := in[i].next; in[i].next != nil; {
			l := in[i].next
			if len(groups[i]) > 0 && j.compareKeys(j.keyOf(first, i), j.keyOf(l, i)) != 0 {
				break
			}
			if size += int64(len(l.text)) + 100; size > w.Most() {
				w.Die(1, "memory exhausted")
				return false
			}
			groups[i] = append(groups[i], l)
			if !j.advance(w, in, i) {
				return false
			}
		}
	}
	if !j.pairs {
		return true
	}
	for _, a := range groups[0] {
		for _, b := range groups[1] {
			if !j.write(w, a, b) {
				return false
			}
		}
	}
	return true
}

func (j *joiner) keyOf(l *joinLine, i int) []byte {
	if j.key[i] < len(l.fields) {
		return l.fields[j.key[i]]
	}
	return nil
}

func (j *joiner) compare(a, b *joinLine) int { return j.compareKeys(j.keyOf(a, 0), j.keyOf(b, 1)) }

func (j *joiner) compareKeys(a, b []byte) int {
	if j.fold {
		a, b = asciiUpper(a), asciiUpper(b)
	}
	return bytes.Compare(a, b)
}

// advance reads the next line of a file and looks at the order.
func (j *joiner) advance(w *gnu.Work, in [2]*joinInput, i int) bool {
	f := in[i]
	text, err := f.lines.Text()
	if err != nil {
		f.next = nil
		if !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
			w.Die(1, "%s: %s", gnu.QuoteName(f.name), command.Reason(err))
			return false
		}
		return true
	}
	prev := f.next
	f.next = j.split(bytes.Clone(text))
	f.n++
	if prev == nil || f.n <= 1 && j.header && f.n == 0 || j.named[i] || j.compareKeys(j.keyOf(prev, i), j.keyOf(f.next, i)) <= 0 {
		return true
	}
	if j.check < 0 || j.check == 0 && !j.seen {
		return true
	}
	j.named[i] = true
	w.Fault("%s:%d: is not sorted: %s", f.name, f.n, f.next.text)
	return j.check == 0
}

func (j *joiner) split(text []byte) *joinLine {
	l := &joinLine{text: text}
	switch {
	case j.tab == '\n':
		l.fields = [][]byte{text}
	case j.tab >= 0:
		if len(text) > 0 {
			l.fields = bytes.Split(text, []byte{byte(j.tab)})
		}
	default:
		l.fields = bytes.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	}
	return l
}

// write joins a and b, either of which may be missing.
func (j *joiner) write(w *gnu.Work, a, b *joinLine) bool {
	sep := byte(' ')
	if j.tab >= 0 {
		sep = byte(j.tab)
	}
	lines := [2]*joinLine{a, b}
	key := []byte(nil)
	if a != nil {
		key = j.keyOf(a, 0)
	} else if b != nil {
		key = j.keyOf(b, 1)
	}
	var out [][]byte
	filled := func(f []byte) {
		if len(f) == 0 {
			f = []byte(j.empty)
		}
		out = append(out, f)
	}
	switch {
	case j.list != nil:
		for _, f := range j.list {
			if f.file == 0 {
				filled(key)
			} else if l := lines[f.file-1]; l != nil && f.field <= len(l.fields) {
				filled(l.fields[f.field-1])
			} else {
				filled(nil)
			}
		}
	default:
		filled(key)
		for i, l := range lines {
			n := 0
			if l != nil {
				n = len(l.fields)
			}
			if j.auto {
				n = j.width[i]
			}
			for k := range n {
				switch {
				case k == j.key[i]:
				case l != nil && k < len(l.fields):
					filled(l.fields[k])
				default:
					filled(nil)
				}
			}
		}
	}
	w.Out.Write(bytes.Join(out, []byte{sep}))
	if err := w.Out.WriteByte(j.end); err != nil || w.Ctx.Err() != nil {
		return false
	}
	return true
}
