package limits

import (
	"fmt"
	"strconv"
	"strings"
)

// Field is one bound by its name.
type Field struct {
	Name  string // as --limit has it
	Value *int64
}

// Fields lists the bounds of l, to be read and set, always in the same order.
func (l *Limits) Fields() []Field {
	return []Field{
		{"commands", &l.Commands},
		{"loops", &l.Loops},
		{"steps", &l.Steps},
		{"calls", &l.Calls},
		{"nesting", &l.Nesting},
		{"source", &l.Source},
		{"output", &l.Output},
		{"written", &l.Written},
		{"globs", &l.Globs},
		{"string", &l.String},
		{"array", &l.Array},
		{"files", &l.Files},
		{"jobs", &l.Jobs},
		{"memory", &l.Memory},
	}
}

// Set sets one bound from "NAME=N". N is a number, with K, M or G for powers of
// 1024. The error names the bounds that there are.
func (l *Limits) Set(s string) error {
	name, text, ok := strings.Cut(s, "=")
	var names []string
	for _, f := range l.Fields() {
		if names = append(names, f.Name); f.Name != name || !ok {
			continue
		}
		n, err := size(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*f.Value = n
		return nil
	}
	if !ok {
		return fmt.Errorf("%q: write NAME=N; NAME is one of %s", s, strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no limit %q: %s", name, strings.Join(names, ", "))
}

func size(s string) (int64, error) {
	digits, shift := strings.TrimRight(s, "KMGkmg"), 0
	if suffix := s[len(digits):]; len(suffix) == 1 {
		shift = 10 * (1 + strings.Index("KMG", strings.ToUpper(suffix)))
	} else if suffix != "" {
		return 0, fmt.Errorf("%q is not a number: write 1000, 64K, 512M or 2G", s)
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is not a number above 0: write 1000, 64K, 512M or 2G", s)
	}
	return int64(n << shift), nil
}
