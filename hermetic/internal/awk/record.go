package awk

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"egressd/hermetic/internal/awk/value"
	"egressd/hermetic/internal/regex"
)

// splitMode is what fields are.
type splitMode int

const (
	bySeparator splitMode = iota
	byContent
	byWidth
)

// maxFields bounds NF.
const maxFields = 1_000_000

// separator is RS.
type separator struct {
	single    byte
	paragraph bool
	re        *regex.Regexp
}

// find looks for the end of a record; one that may go on is none before eof.
func (s separator) find(b []byte, from int, eof bool) (start, end int, err error) {
	switch {
	case s.paragraph:
		at := bytes.Index(b, []byte("\n\n"))
		if at < 0 {
			return -1, -1, nil
		}
		end := at
		for end < len(b) && b[end] == '\n' {
			end++
		}
		if end == len(b) && !eof {
			return -1, -1, nil
		}
		return at, end, nil
	case s.re == nil:
		at := bytes.IndexByte(b[from:], s.single)
		if at < 0 {
			return -1, -1, nil
		}
		return from + at, from + at + 1, nil
	}
	for from = 0; from <= len(b); from++ {
		start, end, err = s.re.Span(b, from, 0)
		switch {
		case err != nil || start < 0:
			return -1, -1, err
		case end == len(b) && !eof:
			return -1, -1, nil
		case end > start:
			return start, end, nil
		}
		from = start
	}
	return -1, -1, nil
}

// record is $0, its fields, and where it comes from.
type record struct {
	in     *interp
	whole  string
	fields []value.Value
	split  bool // fields are those of whole
	stale  bool // whole is to be made from the fields
	rs     separator
	rsText string
	fs     string
	mode   splitMode
	fpat   string
	widths []int

	arg     int // of ARGV, the next
	name    string
	cur     *reader
	std     *reader
	used    bool // a file was read
	stopped bool
}

func (r *record) Text() string {
	if r.stale {
		r.rebuild()
	}
	return r.whole
}

func (r *record) rebuild() {
	var b strings.Builder
	for i, f := range r.fields {
		if i > 0 {
			b.WriteString(r.in.ofs)
		}
		b.WriteString(f.Text(r.in.convfmt))
	}
	r.whole, r.stale = b.String(), false
}

// Set makes s the record.
func (r *record) Set(s string) { r.whole, r.split, r.stale = s, false, false }

func (r *record) splitNow() error {
	if r.split {
		return nil
	}
	r.split = true
	parts, _, err := r.divide(r.whole)
	if err != nil {
		return err
	}
	r.fields = r.fields[:0]
	for _, p := range parts {
		r.fields = append(r.fields, value.Input(p))
	}
	return nil
}

// divide splits s as the record is.
func (r *record) divide(s string) (parts, seps []string, err error) {
	switch r.mode {
	case byContent:
		return r.in.splitContent(s, r.fpat)
	case byWidth:
		for _, w := range r.widths {
			if s == "" {
				break
			}
			f := value.FirstRunes(s, w)
			parts = append(parts, f)
			s = s[len(f):]
		}
		return parts, nil, nil
	}
	return r.in.splitBy(s, r.fs, r.rs.paragraph)
}

func (r *record) count() (int, error) {
	err := r.splitNow()
	return len(r.fields), err
}

func (r *record) field(n float64) (value.Value, error) {
	if n < 0 {
		return value.Value{}, fmt.Errorf("attempt to access field %d", int(n))
	}
	i := int(min(n, maxFields+1))
	if i == 0 {
		return value.Input(r.Text()), nil
	}
	if err := r.splitNow(); err != nil {
		return value.Value{}, err
	}
	if i > len(r.fields) {
		return value.Value{Kind: value.VInput, N: value.Missing}, nil
	}
	return r.fields[i-1], nil
}

func (r *record) setField(n float64, v value.Value) error {
	if n < 0 {
		return fmt.Errorf("attempt to access field %d", int(n))
	}
	if n == 0 {
		r.Set(v.Text(r.in.convfmt))
		return nil
	}
	if err := r.grow(n); err != nil {
		return err
	}
	if v.Kind == value.VNumber {
		v = value.Value{Kind: value.VInput, S: v.Text(r.in.convfmt)}
	}
	r.fields[int(n)-1] = v
	r.stale = true
	return nil
}

func (r *record) grow(n float64) error {
	if err := r.splitNow(); err != nil {
		return err
	}
	if n > maxFields {
		return errors.New("a record has too many fields")
	}
	for len(r.fields) < int(n) {
		r.fields = append(r.fields, value.Value{Kind: value.VInput})
	}
	return nil
}

func (r *record) setCount(n float64) error {
	if n < 0 {
		return errors.New("NF set to negative value")
	}
	if err := r.grow(n); err != nil {
		return err
	}
	r.fields = r.fields[:int(n)]
	r.stale = true
	return nil
}

func (r *record) setFS(fs string) error {
	if err := r.splitNow(); err != nil {
		return err
	}
	r.fs, r.mode = fs, bySeparator
	return nil
}

func (r *record) setFPAT(p string) error {
	if err := r.splitNow(); err != nil {
		return err
	}
	r.fpat, r.mode = p, byContent
	return nil
}

func (r *record) setWidths(s string) error {
	if err := r.splitNow(); err != nil {
		return err
	}
	r.widths = r.widths[:0]
	for _, f := range strings.Fields(s) {
		n := maxFields
		if f != "*" {
			if n = int(value.ParseNumber(f, false)); n <= 0 {
				return fmt.Errorf("invalid FIELDWIDTHS value, for field %d, near `%s'", len(r.widths)+1, f)
			}
		}
		r.widths = append(r.widths, n)
	}
	r.mode = byWidth
	return nil
}

func (r *record) setRS(s string) error {
	r.rsText = s
	return r.refresh()
}

// refresh makes the separator of records anew.
func (r *record) refresh() error {
	s := r.rsText
	switch {
	case s == "":
		r.rs = separator{paragraph: true}
	case len(s) == 1 && !(r.in.ignoreCase && value.IsLetter(s[0])):
		r.rs = separator{single: s[0]}
	default:
		re, err := r.in.compile(s)
		if err != nil {
			return err
		}
		r.rs = separator{re: re}
	}
	return nil
}
