package lang

import (
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// Check finds names that are not defined.
func (m *Machine) Check(q *gojq.Query, s *Scope) error {
	options := []gojq.CompilerOption{gojq.WithInputIter(gojq.NewIter[any]())}
	vars := []string{"$__loc__", "$ENV"}
	for at := s; at != nil; at = at.Up {
		vars = append(vars, at.Name)
	}
	options = append(options, gojq.WithVariables(vars))
	stub := func(name string) {
		name, count, _ := strings.Cut(name, "/")
		n := int(count[0] - '0')
		options = append(options, gojq.WithFunction(name, n, n, func(any, []any) any { return nil }))
	}
	for name := range m.Natives {
		stub(name)
	}
	for at := m.Prelude; at != nil; at = at.Up {
		stub(at.Name)
	}
	_, err := gojq.Compile(q, options...)
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, prefix := range []string{"function not defined: ", "variable not defined: ", "label not defined: "} {
		if name, ok := strings.CutPrefix(text, prefix); ok {
			if strings.HasPrefix(prefix, "label") {
				name = "$*label-" + strings.TrimPrefix(name, "$")
			}
			return fmt.Errorf("%s is not defined", name)
		}
	}
	return err
}
