package awk

import "fmt"

// call calls a function of the program.
func (in *interp) call(e *callExpr) (value, error) {
	if len(e.args) > e.f.count {
		return value{}, fmt.Errorf("function `%s' called with more arguments than declared", e.f.name)
	}
	if in.depth >= maxCalls {
		return value{}, fmt.Errorf("function `%s': calls nest more than %d deep", e.f.name, maxCalls)
	}
	frame := make([]*cell, e.f.count)
	for i := range frame {
		frame[i] = &cell{}
		if i >= len(e.args) {
			continue
		}
		c, err := in.place(e.args[i])
		if err != nil {
			return value{}, err
		}
		if c != nil {
			frame[i] = &cell{v: c.v, arr: c.arr, origin: c}
			continue
		}
		v, err := in.eval(e.args[i])
		if err != nil {
			return value{}, err
		}
		frame[i].v = v
	}
	saved := in.frame
	in.frame = frame
	in.depth++
	f, err := in.run(e.f.body)
	in.depth--
	in.frame = saved
	if err != nil {
		return value{}, err
	}
	v := in.result
	in.result = value{}
	switch f {
	case fExit, fNext, fNextFile:
		return v, &jump{f}
	case fNormal:
		return value{}, nil
	}
	return v, nil
}

// jump is exit, next or nextfile out of a function.
type jump struct{ to flow }

func (j *jump) Error() string { return "jump out of a function" }
