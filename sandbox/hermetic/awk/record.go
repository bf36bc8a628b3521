package awk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/regex"
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
	fields []value
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

func (r *record) text() string {
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
		b.WriteString(f.text(r.in.convfmt))
	}
	r.whole, r.stale = b.String(), false
}

// set makes s the record.
func (r *record) set(s string) { r.whole, r.split, r.stale = s, false, false }

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
		r.fields = append(r.fields, input(p))
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
			f := firstRunes(s, w)
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

func (r *record) field(n float64) (value, error) {
	if n < 0 {
		return value{}, fmt.Errorf("attempt to access field %d", int(n))
	}
	i := int(min(n, maxFields+1))
	if i == 0 {
		return input(r.text()), nil
	}
	if err := r.splitNow(); err != nil {
		return value{}, err
	}
	if i > len(r.fields) {
		return value{}, nil
	}
	return r.fields[i-1], nil
}

func (r *record) setField(n float64, v value) error {
	if n < 0 {
		return fmt.Errorf("attempt to access field %d", int(n))
	}
	if n == 0 {
		r.set(v.text(r.in.convfmt))
		return nil
	}
	if err := r.grow(n); err != nil {
		return err
	}
	if v.kind == vNumber {
		v = value{kind: vInput, s: v.text(r.in.convfmt)}
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
		r.fields = append(r.fields, value{kind: vInput})
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
			if n = int(parseNumber(f, false)); n <= 0 {
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
	case len(s) == 1 && !(r.in.ignoreCase && isLetter(s[0])):
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

// next reads the next record of the main input.
func (r *record) next() (bool, error) {
	for {
		if r.cur == nil {
			ok, err := r.open()
			if !ok || err != nil || r.stopped {
				return false, err
			}
		}
		rec, rt, ok, err := r.cur.record(r.rs)
		if err != nil {
			if r.in.ctx.Err() != nil || errors.Is(err, errRecord) {
				return false, err
			}
			r.in.c.Errorf("warning: command line argument `%s' cannot be read: %s", r.name, command.Reason(err))
			ok = false
		}
		if ok {
			r.in.nr++
			r.in.fnr++
			r.set(rec)
			return true, r.in.setGlobal("RT", str(rt))
		}
		if err := r.endFile(); err != nil {
			return false, err
		}
	}
}

func (r *record) endFile() error {
	r.closeFile()
	for _, s := range r.in.prog.endFile {
		f, err := r.in.run(s)
		if err != nil {
			return err
		}
		if f == fExit {
			r.stopped = true
		}
	}
	return nil
}

func (r *record) closeFile() {
	if r.cur != nil && r.cur.close != nil {
		r.cur.close()
	}
	r.cur = nil
}

func (r *record) close() { r.closeFile() }

// skipFile is nextfile.
func (r *record) skipFile() error { return r.endFile() }

// stdin is the standard input, of which all share what was read.
func (r *record) stdin() *reader {
	if r.std == nil {
		r.std = newReader(r.in, r.in.c.Stdin)
	}
	return r.std
}

// open opens the next file of ARGV; false: there is none.
func (r *record) open() (bool, error) {
	in := r.in
	argv := in.globals[in.slot("ARGV")].array()
	for {
		r.arg++
		argc := int(in.globals[in.slot("ARGC")].v.number())
		if r.arg >= argc {
			if r.used {
				return false, nil
			}
			return true, r.begin("-", r.stdin())
		}
		c := argv.m[fmt.Sprint(r.arg)]
		if c == nil {
			continue
		}
		name := c.v.text(in.convfmt)
		if name == "" {
			continue
		}
		if v, _, ok := strings.Cut(name, "="); ok && isName(v) {
			if err := in.assignment(name); err != nil {
				return false, err
			}
			continue
		}
		if err := in.setGlobal("ARGIND", num(float64(r.arg))); err != nil {
			return false, err
		}
		if name == "-" || name == "/dev/stdin" {
			return true, r.begin(name, r.stdin())
		}
		ok, err := r.openFile(name)
		if ok || err != nil {
			return ok, err
		}
	}
}

func (r *record) openFile(name string) (bool, error) {
	in := r.in
	r.used = true
	f, err := in.c.FS.Open(in.c.Path(name))
	if err == nil {
		if info, bad := f.Stat(); bad == nil && info.IsDir() {
			_ = f.Close()
			_ = in.io.flush()
			in.c.Errorf("warning: command line argument `%s' is a directory: skipped", name)
			return false, nil
		}
	}
	if err != nil {
		if len(in.prog.beginFile) > 0 {
			return r.unreadable(name, err)
		}
		_ = in.io.flush()
		in.c.Errorf("warning: command line argument `%s' cannot be read: %s", name, command.Reason(err))
		in.failed(statusFatal)
		return false, nil
	}
	rd := newReader(in, f)
	rd.close = func() int {
		_ = f.Close()
		return 0
	}
	return true, r.begin(name, rd)
}

// unreadable lets BEGINFILE see a file that cannot be read: it is skipped by
// nextfile, and fatal otherwise.
func (r *record) unreadable(name string, err error) (bool, error) {
	if bad := r.in.setGlobal("ERRNO", str(command.Reason(err))); bad != nil {
		return false, bad
	}
	if bad := r.begin(name, newReader(r.in, strings.NewReader(""))); bad != nil {
		return false, bad
	}
	if r.cur == nil { // nextfile
		return false, nil
	}
	return false, fmt.Errorf("cannot open file `%s' for reading: %s", name, command.Reason(err))
}

// begin starts a file.
func (r *record) begin(name string, rd *reader) error {
	in := r.in
	r.used, r.name, r.cur = true, name, rd
	in.fnr = 0
	if err := in.setGlobal("FILENAME", input(name)); err != nil {
		return err
	}
	for _, s := range in.prog.beginFile {
		f, err := in.run(s)
		if err != nil {
			return err
		}
		switch f {
		case fNextFile:
			r.closeFile()
			return nil
		case fExit:
			r.stopped = true
		}
	}
	return in.setGlobal("ERRNO", str(""))
}

// getline is all forms of it.
func (in *interp) getline(e *getlineExpr) (value, error) {
	if e.source == nil {
		return in.getlineMain(e)
	}
	src, err := in.eval(e.source)
	if err != nil {
		return value{}, err
	}
	r, err := in.io.input(e.from == "|", src.text(in.convfmt))
	var open *openError
	if errors.As(err, &open) {
		return num(-1), in.setGlobal("ERRNO", str(command.Reason(open.error)))
	}
	if err != nil {
		return value{}, err
	}
	rec, rt, ok, err := r.record(in.rec.rs)
	switch {
	case err != nil && in.ctx.Err() != nil, errors.Is(err, errRecord):
		return value{}, err
	case err != nil && !errors.Is(err, io.EOF):
		return num(-1), in.setGlobal("ERRNO", str(command.Reason(err)))
	case !ok:
		return num(0), nil
	}
	if err := in.setGlobal("RT", str(rt)); err != nil {
		return value{}, err
	}
	return num(1), in.received(e.target, rec)
}

func (in *interp) getlineMain(e *getlineExpr) (value, error) {
	saved := in.rec.text()
	if _, err := in.rec.count(); err != nil {
		return value{}, err
	}
	ok, err := in.rec.next()
	if err != nil || !ok {
		return num(0), err
	}
	if e.target == nil {
		return num(1), nil
	}
	rec := in.rec.text()
	in.rec.set(saved)
	return num(1), in.received(e.target, rec)
}

// received puts a record where getline wants it.
func (in *interp) received(target expr, rec string) error {
	if target == nil {
		in.rec.set(rec)
		return nil
	}
	return in.assignTo(target, input(rec))
}
