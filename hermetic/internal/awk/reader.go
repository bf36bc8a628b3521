package awk

import (
	"bytes"
	"errors"
	"io"
)

// reader reads records.
type reader struct {
	in    *interp
	r     io.Reader
	buf   []byte
	from  int // what was used of buf
	eof   bool
	close func() int
}

func newReader(in *interp, r io.Reader) *reader { return &reader{in: in, r: r} }

var errRecord = errors.New("a record is longer than the memory of this run allows")

// more reads into the buffer.
func (r *reader) more() error {
	if r.eof {
		return nil
	}
	if err := r.in.ctx.Err(); err != nil {
		return err
	}
	if r.from > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.from:])]
		r.from = 0
	}
	if int64(len(r.buf)) > r.in.c.Budget.Limits.Memory/8 {
		return errRecord
	}
	n := len(r.buf)
	if cap(r.buf)-n < 4096 {
		grown := make([]byte, n, max(2*cap(r.buf), 64<<10))
		copy(grown, r.buf)
		r.buf = grown
	}
	got, err := r.r.Read(r.buf[n:cap(r.buf)])
	r.buf = r.buf[:n+got]
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		r.eof = true
		return nil
	}
	return err
}

// record reads one record and what ended it.
func (r *reader) record(rs separator) (rec, rt string, ok bool, err error) {
	if rs.paragraph {
		if err := r.skipNewlines(); err != nil {
			return "", "", false, err
		}
	}
	looked := 0
	for {
		rest := r.buf[r.from:]
		start, end, err := rs.find(rest, looked, r.eof)
		if err != nil {
			return "", "", false, err
		}
		if start >= 0 {
			rec, rt = string(rest[:start]), string(rest[start:end])
			r.from += end
			return rec, rt, true, nil
		}
		if r.eof {
			if len(rest) == 0 {
				return "", "", false, nil
			}
			r.from = len(r.buf)
			if rs.paragraph {
				trimmed := bytes.TrimRight(rest, "\n")
				return string(trimmed), string(rest[len(trimmed):]), true, nil
			}
			return string(rest), "", true, nil
		}
		if rs.re == nil {
			looked = max(len(rest)-1, 0)
		}
		if err := r.more(); err != nil {
			return "", "", false, err
		}
	}
}

func (r *reader) skipNewlines() error {
	for {
		for r.from < len(r.buf) && r.buf[r.from] == '\n' {
			r.from++
		}
		if r.from < len(r.buf) || r.eof {
			return nil
		}
		if err := r.more(); err != nil {
			return err
		}
	}
}
