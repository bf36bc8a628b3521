// Package vars keeps the variables of a shell: plain values, arrays, attributes
// and scopes.
//
//	t := vars.New(sh, now)
//	t.Set("name", "value")
//	t.SetElement("list", "3", "x", false) // list[3]=x
//	v := t.Lookup("list")                 // nil if there is none
//
// A Table does not parse, expand or evaluate. It asks its Shell for the value
// of a subscript, for variables that the shell computes ($LINENO, $RANDOM), and
// whether a limit is exceeded. Package assign turns the syntax of assignments
// and of declare into calls of a Table.
package vars

import (
	"slices"
	"strings"
	"time"
)

// Shell is what variables need from the shell they belong to.
type Shell interface {
	// Errorf writes a message as the shell does.
	Errorf(format string, args ...any)
	// Arith evaluates a subscript, or a value of an integer variable.
	Arith(text string) int64
	// Computed is a variable that the shell computes when it is read, such as
	// LINENO; nil if name is not one.
	Computed(name string) *Variable
	// SetComputed handles an assignment to such a variable. It reports false if
	// the value is to be stored as that of any other variable.
	SetComputed(name, value string) bool
	// Changed reports an assignment to name to the parts that depend on it.
	Changed(name string)
	// AllExport reports set -a.
	AllExport() bool
	// Grow counts by more bytes held, and ends the shell if the memory limit is
	// exceeded, or the string limit by a value of size bytes.
	Grow(by int64, size int)
	// CheckLen and CheckArray end the shell if a string of n bytes, or an array
	// of n elements, exceeds its limit.
	CheckLen(n int)
	CheckArray(n int)
}

// Table is the variables of one shell. The zero value is not usable: call New.
// The goroutine of the shell owns it.
type Table struct {
	Scope *Scope // the innermost

	Random      Random    // $RANDOM and $SRANDOM
	Since       time.Time // $SECONDS counts from here
	SecondsBase int64     // and this is added

	ordinary map[string]bool // computed variables that were unset: they stay ordinary
	shell    Shell
}

// New makes an empty table.
func New(sh Shell, now time.Time) Table {
	return Table{Scope: &Scope{Vars: map[string]*Variable{}}, Since: now, shell: sh}
}

// Clone copies the table for a subshell. Elements of arrays are shared until
// one side changes them.
func (t *Table) Clone(sh Shell) Table {
	c := *t
	c.Scope = t.Scope.clone()
	c.ordinary = make(map[string]bool, len(t.ordinary))
	for name := range t.ordinary {
		c.ordinary[name] = true
	}
	c.shell = sh
	return c
}

// computed is a variable that the shell computes; nil if name is not one, or
// was unset.
func (t *Table) computed(name string) *Variable {
	if !computable(name) || t.ordinary[name] {
		return nil
	}
	return t.shell.Computed(name)
}

// SetComputed offers an assignment to the shell; true: there is nothing to
// store.
func (t *Table) SetComputed(name, value string) bool {
	if !computable(name) || t.ordinary[name] {
		return false
	}
	return t.shell.SetComputed(name, value)
}

// computable is a quick check that rules most names out.
func computable(name string) bool { return name != "" && name[0] >= 'B' && name[0] <= 'U' }

// computedNames lists the variables that the shell computes when they are read.
func computedNames() []string {
	return []string{
		"BASHOPTS", "BASHPID", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_COMMAND", "DIRSTACK", "EPOCHREALTIME",
		"EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "LINENO", "PIPESTATUS", "PPID", "RANDOM", "SECONDS", "SHELLOPTS",
		"SRANDOM", "UID", "BASH_ALIASES", "BASH_CMDS",
	}
}

// maxRefs bounds chains of declare -n.
const maxRefs = 8

// Resolve follows declare -n. The result can be "name[index]".
func (t *Table) Resolve(name string) string {
	for range maxRefs {
		v := t.Raw(name)
		if v == nil || !v.Ref || v.Str == "" {
			return name
		}
		if v.Str == name {
			t.shell.Errorf("warning: %s: circular name reference", name)
			return name
		}
		name = v.Str
		if strings.IndexByte(name, '[') >= 0 {
			return name
		}
	}
	t.shell.Errorf("warning: %s: circular name reference", name)
	return name
}

// Lookup finds the variable that name means, computed ones included; nil if
// there is none.
func (t *Table) Lookup(name string) *Variable {
	if v := t.Raw(name); v != nil {
		if !v.Ref {
			return v
		}
		to := t.Resolve(name)
		if base, index, ok := SplitSubscript(to); ok {
			s, isSet := t.Element(base, index)
			return &Variable{Str: s, IsSet: isSet}
		}
		if to == name {
			return v
		}
		return t.Lookup(to)
	}
	return t.computed(name)
}

// LookupRef is Lookup, but does not follow a reference.
func (t *Table) LookupRef(name string) *Variable {
	if v := t.Raw(name); v != nil {
		return v
	}
	return t.computed(name)
}

// Get is the value of $name; "" if it is not set.
func (t *Table) Get(name string) string {
	if v := t.Lookup(name); v != nil {
		s, _ := v.Scalar()
		return s
	}
	return ""
}

// IsSet reports whether $name has a value.
func (t *Table) IsSet(name string) bool {
	v := t.Lookup(name)
	if v == nil {
		return false
	}
	_, ok := v.Scalar()
	return ok
}

// HasValue reports whether name has a value or is an array.
func (t *Table) HasValue(name string) bool {
	v := t.Lookup(name)
	return v != nil && (v.IsSet || v.Kind != Plain)
}

// Element is one element of an array, by the text of its subscript.
func (t *Table) Element(name, index string) (string, bool) {
	v := t.Lookup(name)
	if v == nil {
		return "", false
	}
	if v.Kind == Assoc {
		s, ok := v.Pairs.Vals[index]
		return s, ok
	}
	at, ok := t.Index(v, name, index)
	if !ok {
		return "", false
	}
	if v.Kind == Indexed {
		return v.List.Get(at)
	}
	if at == 0 {
		return v.Str, v.IsSet
	}
	return "", false
}

// Index evaluates a subscript of v, which may be nil. Negative subscripts count
// from the end.
func (t *Table) Index(v *Variable, name, index string) (int64, bool) {
	at := t.shell.Arith(index)
	if at >= 0 {
		return at, true
	}
	next := int64(0)
	if v != nil {
		next = 1
		if v.Kind == Indexed {
			next = v.List.Next()
		}
	}
	if at += next; at < 0 {
		t.shell.Errorf("%s: bad array subscript", name)
		return 0, false
	}
	return at, true
}

// Names lists all variables, sorted.
func (t *Table) Names() []string {
	seen := map[string]bool{}
	for s := t.Scope; s != nil; s = s.Prev {
		for k := range s.Vars {
			seen[k] = true
		}
	}
	for _, k := range computedNames() {
		if !t.ordinary[k] {
			seen[k] = true
		}
	}
	out := make([]string, 0, len(seen))
	for k := range seen {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Environ lists the exported variables as name=value, each name once, in no
// order.
func (t *Table) Environ() []string {
	seen := map[string]*Variable{}
	for s := t.Scope; s != nil; s = s.Prev {
		for k, v := range s.Vars {
			if seen[k] == nil {
				seen[k] = v
			}
		}
	}
	var out []string
	for k, v := range seen {
		if s, ok := v.Scalar(); ok && v.Exported && v.Kind == Plain && !v.Ref {
			out = append(out, k+"="+s)
		}
	}
	return out
}
