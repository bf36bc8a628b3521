package awk

import (
	"fmt"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// call calls a function of the program.
func (in *interp) call(e *syntax.CallExpr) (value.Value, error) {
	if len(e.Args) > e.F.Count {
		return value.Value{}, fmt.Errorf("function `%s' called with more arguments than declared", e.F.Name)
	}
	if in.depth >= maxCalls {
		return value.Value{}, fmt.Errorf("function `%s': calls nest more than %d deep", e.F.Name, maxCalls)
	}
	frame := make([]*value.Cell, e.F.Count)
	for i := range frame {
		frame[i] = &value.Cell{}
		if i >= len(e.Args) {
			continue
		}
		c, err := in.place(e.Args[i])
		if err != nil {
			return value.Value{}, err
		}
		if c != nil {
			frame[i] = &value.Cell{V: c.V, Arr: c.Arr, Origin: c}
			continue
		}
		v, err := in.eval(e.Args[i])
		if err != nil {
			return value.Value{}, err
		}
		frame[i].V = v
	}
	saved := in.frame
	in.frame = frame
	in.depth++
	f, err := in.run(e.F.Body)
	in.depth--
	in.frame = saved
	if err != nil {
		return value.Value{}, err
	}
	v := in.result
	in.result = value.Value{}
	switch f {
	case fExit, fNext, fNextFile:
		return v, &jump{f}
	case fNormal:
		return value.Value{}, nil
	}
	return v, nil
}

// jump is exit, next or nextfile out of a function.
type jump struct{ to flow }

func (j *jump) Error() string { return "jump out of a function" }
