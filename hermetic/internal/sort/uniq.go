package sort

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type uniqWant struct {
	count, repeated, unique, all bool
	grouping                     string // of --group, or of -D
	group, fold                  bool
	fields, chars, width         int
	end                          byte
}

func uniq(w *gnu.Work) {
	for i, a := range w.Args { // "-1" is "-f 1"
		if len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' && i > 0 && (len(w.Args[i-1]) != 2 || strings.IndexByte("fsw", w.Args[i-1][1]) < 0) {
			w.Args = slices.Clone(w.Args)
			w.Args[i] = "-f" + a[1:]
			continue
		}
		if a == "--" {
			break
		}
	}
	sets, operands, ok := w.Options("[OPTION]... [INPUT [OUTPUT]]", "c,count d,repeated D ,all-repeated:: f:,skip-fields: ,group:: i,ignore-case s:,skip-chars: u,unique z,zero-terminated w:,check-chars:")
	if !ok {
		return
	}
	u := uniqWant{width: -1, end: '\n'}
	for _, o := range sets {
		if !u.set(w, o) {
			return
		}
	}
	if w.Extra(operands, 2) {
		return
	}
	if u.group && (u.count || u.repeated || u.unique || u.all) {
		w.TryHelp("--group is mutually exclusive with -c/-d/-D/-u")
		return
	}
	if u.all && u.count {
		w.TryHelp("printing all duplicated lines and repeat counts is meaningless")
		return
	}
	in := "-"
	if len(operands) > 0 {
		in = operands[0]
	}
	r, err := w.Open(in)
	if err != nil {
		w.Die(1, "%s: %s", gnu.QuoteName(in), command.Reason(err))
		return
	}
	defer r.Close()
	if len(operands) == 2 && operands[1] != "-" {
		f, err := w.Create(operands[1], false)
		if err != nil {
			w.Die(1, "%s: %s", gnu.QuoteName(operands[1]), command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	run := u.run
	if u.group {
		run = u.grouped
	}
	if err := run(w, r); err != nil && !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
		w.Die(1, "error reading %s", gnu.QuoteShell(in))
	}
}

func (u *uniqWant) set(w *gnu.Work, o command.Set) bool {
	number := func(what string, to *int) bool {
		n, err := strconv.ParseInt(o.Value, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) || n < 0 {
			w.Die(1, "%s: invalid number of %s", o.Value, what)
			return false
		}
		*to = int(n)
		return true
	}
	choice := func(of ...string) bool {
		valid := "\nValid arguments are:\n  - ‘" + strings.Join(of, "’\n  - ‘") + "’"
		if o.Given {
			of = slices.DeleteFunc(of, func(s string) bool { return !strings.HasPrefix(s, o.Value) })
			if len(of) != 1 {
				w.TryHelp("invalid argument %s for ‘--%s’%s", gnu.Quote(o.Value), o.Name, valid)
				return false
			}
		}
		u.grouping = of[0]
		return true
	}
	switch o.Name {
	case "count":
		u.count = true
	case "repeated":
		u.repeated = true
	case "D", "all-repeated":
		u.all, u.repeated = true, true
		return choice("none", "prepend", "separate")
	case "group":
		u.group = true
		return choice("separate", "prepend", "append", "both")
	case "ignore-case":
		u.fold = true
	case "unique":
		u.unique = true
	case "zero-terminated":
		u.end = 0
	case "skip-fields":
		return number("fields to skip", &u.fields)
	case "skip-chars":
		return number("bytes to skip", &u.chars)
	case "check-chars":
		return number("bytes to compare", &u.width)
	}
	return true
}

// key is the part of a line that counts.
func (u *uniqWant) key(line []byte) []byte {
	for range u.fields {
		n := len(line)
		line = bytes.TrimLeft(line, " \t\n")
		if at := bytes.IndexAny(line, " \t\n"); at >= 0 {
			line = line[at:]
		} else {
			line = nil
		}
		if n == 0 {
			break
		}
	}
	line = line[min(u.chars, len(line)):]
	if u.width >= 0 {
		line = line[:min(u.width, len(line))]
	}
	if u.fold {
		line = asciiUpper(line)
	}
	return line
}

func asciiUpper(b []byte) []byte {
	out := slices.Clone(b)
	for i, c := range out {
		if c >= 'a' && c <= 'z' {
			out[i] = c - 32
		}
	}
	return out
}

// run goes through the lines, one group of equal ones after the other. As in
// uniq, each line of a group is written when the next one is known.
func (u *uniqWant) run(w *gnu.Work, r io.Reader) error {
	lines := w.Lines(r, u.end)
	var prev, key []byte
	n, groups, any := int64(0), 0, false
	for {
		text, err := lines.Text()
		if err != nil {
			if any {
				u.finish(w, prev, n)
			}
			return err
		}
		if any && bytes.Equal(u.key(text), key) {
			if n++; !u.all {
				continue
			}
			if n == 1 {
				u.separate(w, groups)
				groups++
			}
			u.line(w, prev)
		} else {
			if any {
				u.finish(w, prev, n)
			}
			n, any = 0, true
		}
		prev = append(prev[:0], text...)
		key = u.key(prev)
		if _, err := w.Out.Write(nil); err != nil {
			return io.EOF
		}
	}
}

// grouped is run for --group.
func (u *uniqWant) grouped(w *gnu.Work, r io.Reader) error {
	lines := w.Lines(r, u.end)
	var key []byte
	groups := 0
	for {
		text, err := lines.Text()
		if err != nil {
			if groups > 0 && (u.grouping == "append" || u.grouping == "both") {
				w.Out.WriteByte(u.end)
			}
			return err
		}
		if k := u.key(text); groups == 0 || !bytes.Equal(k, key) {
			if groups > 0 || u.grouping == "prepend" || u.grouping == "both" {
				w.Out.WriteByte(u.end)
			}
			groups++
			key = bytes.Clone(k)
		}
		u.line(w, text)
		if _, err := w.Out.Write(nil); err != nil {
			return io.EOF
		}
	}
}

func (u *uniqWant) separate(w *gnu.Work, groups int) {
	if u.grouping == "prepend" || u.grouping == "separate" && groups > 0 {
		w.Out.WriteByte(u.end)
	}
}

func (u *uniqWant) line(w *gnu.Work, text []byte) {
	w.Out.Write(text)
	w.Out.WriteByte(u.end)
}

// finish writes the last line of a group of n more than one.
func (u *uniqWant) finish(w *gnu.Work, last []byte, n int64) {
	if n == 0 && u.repeated || n > 0 && u.unique {
		return
	}
	if u.count {
		fmt.Fprintf(w.Out, "%7d ", n+1)
	}
	u.line(w, last)
}
