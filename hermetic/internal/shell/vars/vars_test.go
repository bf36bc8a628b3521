package vars

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakeShell evaluates decimal numbers alone and computes LINENO.
type fakeShell struct {
	said    []string
	changed []string
	export  bool
}

func (f *fakeShell) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *fakeShell) Arith(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (f *fakeShell) Computed(name string) *Variable {
	if name == "LINENO" {
		return OfInt(7)
	}
	return nil
}
func (f *fakeShell) SetComputed(name, _ string) bool { return name == "LINENO" }
func (f *fakeShell) Changed(name string)             { f.changed = append(f.changed, name) }
func (f *fakeShell) AllExport() bool                 { return f.export }
func (f *fakeShell) Grow(int64, int)                 {}
func (f *fakeShell) CheckLen(int)                    {}
func (f *fakeShell) CheckArray(int)                  {}

func newTable() (*Table, *fakeShell) {
	f := &fakeShell{}
	t := New(f, time.Time{})
	return &t, f
}

func TestAttributesShapeValues(t *testing.T) {
	for _, tt := range []struct {
		name string
		with Variable
		old  string
		val  string
		add  bool
		want string
	}{
		{name: "plain", val: "aB", want: "aB"},
		{name: "appended", old: "a", val: "B", add: true, want: "aB"},
		{name: "integer", with: Variable{Integer: true}, val: "012x", want: "0"},
		{name: "integer appended", with: Variable{Integer: true}, old: "2", val: "3", add: true, want: "5"},
		{name: "lower", with: Variable{Lower: true}, val: "aB", want: "ab"},
		{name: "upper", with: Variable{Upper: true}, old: "x", val: "aB", add: true, want: "XAB"},
		{name: "capital", with: Variable{Capital: true}, val: "aBC", want: "Abc"},
	} {
		table, _ := newTable()
		if got := table.Shape(&tt.with, tt.old, tt.val, tt.add); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestReferences(t *testing.T) {
	table, sh := newTable()
	table.Set("x", "1")
	table.Global().Vars["r"] = &Variable{Str: "x", IsSet: true, Ref: true}
	table.Global().Vars["e"] = &Variable{Str: "list[2]", IsSet: true, Ref: true}
	table.Global().Vars["loop"] = &Variable{Str: "loop", IsSet: true, Ref: true}
	table.Set("r", "2")
	table.Set("e", "two")
	if got := table.Get("x"); got != "2" {
		t.Errorf("x is %q after an assignment through r", got)
	}
	if got, _ := table.Element("list", "2"); got != "two" {
		t.Errorf("list[2] is %q after an assignment through e", got)
	}
	if got := table.Get("e"); got != "two" {
		t.Errorf("$e is %q", got)
	}
	table.Get("loop")
	if len(sh.said) == 0 || !strings.Contains(sh.said[0], "circular") {
		t.Errorf("a reference to itself: %q", sh.said)
	}
}

// Assignments before a command end with it, those in a function are local only
// if it says so, and unset in a function shows nothing below it.
func TestScopes(t *testing.T) {
	table, _ := newTable()
	table.Set("x", "global")
	table.Scope = &Scope{Vars: map[string]*Variable{}, Prev: table.Scope}
	table.Set("y", "set in the function")
	table.Local("x").Str = "local"
	table.Scope.Vars["x"].IsSet = true
	if got := table.Get("x"); got != "local" {
		t.Errorf("x is %q in the function", got)
	}
	table.Unset("x")
	if table.IsSet("x") {
		t.Error("x is set after unset in the function")
	}
	table.Scope = table.Scope.Prev
	if got := table.Get("x"); got != "global" {
		t.Errorf("x is %q after the function", got)
	}
	if got := table.Get("y"); got != "set in the function" {
		t.Errorf("y is %q after the function", got)
	}
}

func TestCloneSharesUntilChanged(t *testing.T) {
	table, sh := newTable()
	table.SetList("a", []string{"one", "two"})
	sub := table.Clone(sh)
	sub.SetElement("a", "0", "changed", false)
	table.SetElement("a", "1", "here", false)
	if got, want := strings.Join(table.Lookup("a").Values(), " "), "one here"; got != want {
		t.Errorf("the shell has %q, want %q", got, want)
	}
	if got, want := strings.Join(sub.Lookup("a").Values(), " "), "changed two"; got != want {
		t.Errorf("the subshell has %q, want %q", got, want)
	}
}

func TestSubscripts(t *testing.T) {
	table, sh := newTable()
	table.SetList("a", []string{"0", "1", "2"})
	table.SetElement("a", "9", "9", false)
	for index, want := range map[string]string{"0": "0", "-1": "9", "9": "9", "5": ""} {
		if got, _ := table.Element("a", index); got != want {
			t.Errorf("a[%s] is %q, want %q", index, got, want)
		}
	}
	if _, ok := table.Element("a", "-11"); ok || len(sh.said) != 1 {
		t.Errorf("a[-11]: %v, %q", ok, sh.said)
	}
}

func TestComputedUntilUnset(t *testing.T) {
	table, _ := newTable()
	if got := table.Get("LINENO"); got != "7" {
		t.Errorf("LINENO is %q", got)
	}
	if !slices.Contains(table.Names(), "LINENO") {
		t.Error("LINENO is not listed")
	}
	table.Set("LINENO", "1")
	if got := table.Get("LINENO"); got != "7" {
		t.Errorf("LINENO is %q after an assignment", got)
	}
	table.Unset("LINENO")
	if table.IsSet("LINENO") {
		t.Error("LINENO is set after unset")
	}
	table.Set("LINENO", "1")
	if got := table.Get("LINENO"); got != "1" {
		t.Errorf("LINENO is %q after unset and an assignment", got)
	}
}

func TestReadonly(t *testing.T) {
	table, sh := newTable()
	table.Set("x", "1")
	table.Raw("x").Readonly = true
	for name, ok := range map[string]bool{
		"set": table.Set("x", "2"), "element": table.SetElement("x", "1", "2", false),
		"list": table.SetList("x", nil), "unset": table.Unset("x"),
	} {
		if ok {
			t.Errorf("%s of a readonly variable works", name)
		}
	}
	if len(sh.said) != 4 || table.Get("x") != "1" {
		t.Errorf("%q, x is %q", sh.said, table.Get("x"))
	}
}
