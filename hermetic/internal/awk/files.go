package awk

import (
	"errors"
	"fmt"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

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
			r.Set(rec)
			return true, r.in.setGlobal("RT", value.Str(rt))
		}
		if err := r.endFile(); err != nil {
			return false, err
		}
	}
}

func (r *record) endFile() error {
	r.closeFile()
	for _, s := range r.in.prog.EndFile {
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
	argv := in.globals[in.slot("ARGV")].Array()
	for {
		r.arg++
		argc := int(in.globals[in.slot("ARGC")].V.Number())
		if r.arg >= argc {
			if r.used {
				return false, nil
			}
			return true, r.begin("-", r.stdin())
		}
		c := argv.M[fmt.Sprint(r.arg)]
		if c == nil {
			continue
		}
		name := c.V.Text(in.convfmt)
		if name == "" {
			continue
		}
		if v, _, ok := strings.Cut(name, "="); ok && syntax.IsName(v) {
			if err := in.assignment(name); err != nil {
				return false, err
			}
			continue
		}
		if err := in.setGlobal("ARGIND", value.Num(float64(r.arg))); err != nil {
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
		if len(in.prog.BeginFile) > 0 {
			return r.unreadable(name, err)
		}
		return false, fmt.Errorf("cannot open file `%s' for reading: %s", name, command.Reason(err))
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
	if bad := r.in.setGlobal("ERRNO", value.Str(command.Reason(err))); bad != nil {
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
	if err := in.setGlobal("FILENAME", value.Input(name)); err != nil {
		return err
	}
	for _, s := range in.prog.BeginFile {
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
	return in.setGlobal("ERRNO", value.Str(""))
}
