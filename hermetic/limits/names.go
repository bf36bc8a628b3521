package limits

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
