package lang

import (
	"errors"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// paths collects where the outputs of q lie.
func (m *Machine) paths(q *gojq.Query, s *Scope, in Item, out func(keys []any, v any) error) error {
	return m.Eval(q, s, Item{in.V, rootPath}, func(x Item) error {
		if x.path == noPath {
			return Failf("Invalid path expression with result %s", value.Tojson(x.V))
		}
		return out(x.path.Keys(), x.V)
	})
}

var errEnough = errors.New("enough")

// update is all the operators that assign.
func (m *Machine) update(q *gojq.Query, s *Scope, in Item, out Emit) error {
	if q.Op == gojq.OpModify {
		v, err := m.modify(q.Left, s, in, func(old any) (any, bool, error) {
			var x any
			found := false
			err := m.values(q.Right, s, Item{V: old}, func(v any) error {
				x, found = v, true
				return errEnough
			})
			if errors.Is(err, errEnough) {
				err = nil
			}
			return x, found, err
		})
		if err != nil {
			return err
		}
		return out(in.Computed(v))
	}
	ops := map[gojq.Operator]gojq.Operator{gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul, gojq.OpUpdateDiv: gojq.OpDiv, gojq.OpUpdateMod: gojq.OpMod}
	return m.values(q.Right, s, in, func(r any) error {
		v, err := m.modify(q.Left, s, in, func(old any) (any, bool, error) {
			switch {
			case q.Op == gojq.OpAssign || q.Op == gojq.OpUpdateAlt && !value.Truthy(old):
				return r, true, nil
			case q.Op == gojq.OpUpdateAlt:
				return old, true, nil
			}
			v, err := operate(ops[q.Op], old, r)
			return v, true, err
		})
		if err != nil {
			return err
		}
		return out(in.Computed(v))
	})
}

// modify changes what lies at every path of q; what change does not give a new
// value for is deleted.
func (m *Machine) modify(q *gojq.Query, s *Scope, in Item, change func(any) (any, bool, error)) (any, error) {
	v := in.V
	var dead []any
	err := m.paths(q, s, in, func(keys []any, _ any) error {
		old, err := getPath(v, keys)
		if err != nil {
			return err
		}
		x, ok, err := change(old)
		if err != nil {
			return err
		}
		if !ok {
			dead = append(dead, keys)
			return nil
		}
		v, err = setPath(v, keys, x)
		return err
	})
	if err != nil || dead == nil {
		return v, err
	}
	return deletePaths(v, dead)
}
