package awk

import (
	"errors"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// getline is all forms of it.
func (in *interp) getline(e *syntax.GetlineExpr) (value.Value, error) {
	if e.Source == nil {
		return in.getlineMain(e)
	}
	src, err := in.eval(e.Source)
	if err != nil {
		return value.Value{}, err
	}
	r, err := in.io.input(e.From == "|", src.Text(in.convfmt))
	var open *openError
	if errors.As(err, &open) {
		return value.Num(-1), in.setGlobal("ERRNO", value.Str(command.Reason(open.error)))
	}
	if err != nil {
		return value.Value{}, err
	}
	rec, rt, ok, err := r.record(in.rec.rs)
	switch {
	case err != nil && in.ctx.Err() != nil, errors.Is(err, errRecord):
		return value.Value{}, err
	case err != nil && !errors.Is(err, io.EOF):
		return value.Num(-1), in.setGlobal("ERRNO", value.Str(command.Reason(err)))
	case !ok:
		return value.Num(0), nil
	}
	if err := in.setGlobal("RT", value.Str(rt)); err != nil {
		return value.Value{}, err
	}
	return value.Num(1), in.received(e.Target, rec)
}

func (in *interp) getlineMain(e *syntax.GetlineExpr) (value.Value, error) {
	saved := in.rec.Text()
	if _, err := in.rec.count(); err != nil {
		return value.Value{}, err
	}
	ok, err := in.rec.next()
	if err != nil || !ok {
		return value.Num(0), err
	}
	if e.Target == nil {
		return value.Num(1), nil
	}
	rec := in.rec.Text()
	in.rec.Set(saved)
	return value.Num(1), in.received(e.Target, rec)
}

// received puts a record where getline wants it.
func (in *interp) received(target syntax.Expr, rec string) error {
	if target == nil {
		in.rec.Set(rec)
		return nil
	}
	return in.assignTo(target, value.Input(rec))
}
