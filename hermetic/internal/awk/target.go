package awk

// pinned is a target whose subscripts are reckoned once, for what reads and
// then sets it.
func (in *interp) pinned(target expr) (expr, error) {
	switch t := target.(type) {
	case *indexExpr:
		array, err := in.pinned(t.array)
		if err != nil {
			return nil, err
		}
		key, err := in.key(t.subs)
		return &indexExpr{array, []expr{&strExpr{str(key)}}}, err
	case *fieldExpr:
		n, err := in.eval(t.index)
		return &fieldExpr{&numExpr{num(n.number())}}, err
	case *groupExpr:
		if len(t.list) == 1 {
			return in.pinned(t.list[0])
		}
	}
	return target, nil
}

func isVariable(e expr) bool {
	_, ok := e.(*nameExpr)
	return ok
}

func (in *interp) increment(e *incExpr) (value, error) {
	if !isVariable(e.target) {
		target, err := in.pinned(e.target)
		if err != nil {
			return value{}, err
		}
		e = &incExpr{target, e.by, e.prefix}
	}
	v, err := in.eval(e.target)
	if err != nil {
		return value{}, err
	}
	was := v.number()
	if err := in.assignTo(e.target, num(was+e.by)); err != nil {
		return value{}, err
	}
	if e.prefix {
		return num(was + e.by), nil
	}
	return num(was), nil
}
