package awk

import (
	"errors"
	"io"

	"egressd/hermetic/command"
)

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
