package vars

// Scope is the variables of one function call, of the assignments before one
// command, or, at the bottom, of the shell.
type Scope struct {
	Vars map[string]*Variable
	Prev *Scope
	Temp bool // assignments before a command
	Opts bool // local -: the options of set are restored when the function returns
}

func (s *Scope) clone() *Scope {
	if s == nil {
		return nil
	}
	c := &Scope{Vars: make(map[string]*Variable, len(s.Vars)+4), Prev: s.Prev.clone(), Temp: s.Temp}
	for k, v := range s.Vars {
		if v.Kind != Plain {
			v.Shared = true
		}
		w := *v
		c.Vars[k] = &w
	}
	return c
}

// Raw finds a name without following a reference; nil if it is not there.
func (t *Table) Raw(name string) *Variable {
	for s := t.Scope; s != nil; s = s.Prev {
		if v := s.Vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// Global is the scope of the shell itself.
func (t *Table) Global() *Scope {
	s := t.Scope
	for s.Prev != nil {
		s = s.Prev
	}
	return s
}

// Function is the scope of the function that runs, or that of the shell.
func (t *Table) Function() *Scope {
	s := t.Scope
	for s.Temp && s.Prev != nil {
		s = s.Prev
	}
	return s
}

// Target is the variable to assign name to. It is made if it is not there: in
// the scope of the shell, as in bash.
func (t *Table) Target(name string) *Variable {
	if v := t.Raw(name); v != nil {
		return v
	}
	v := &Variable{}
	if d := t.computed(name); d != nil {
		v.Exported, v.Readonly, v.Integer = d.Exported, d.Readonly, d.Integer
	}
	t.Global().Vars[name] = v
	return v
}

// Local makes name a variable of the function that runs.
func (t *Table) Local(name string) *Variable {
	s := t.Function()
	if v := s.Vars[name]; v != nil {
		return v
	}
	v := &Variable{}
	for u := t.Scope; u != nil && u != s; u = u.Prev {
		if w := u.Vars[name]; w != nil && u.Temp {
			*v = *w
			delete(u.Vars, name)
		}
	}
	s.Vars[name] = v
	return v
}

// Unset removes a variable. It reports false for a readonly one.
func (t *Table) Unset(name string) bool {
	for s := t.Scope; s != nil; s = s.Prev {
		v := s.Vars[name]
		if v == nil {
			continue
		}
		if v.Readonly {
			t.shell.Errorf("unset: %s: cannot unset: readonly variable", name)
			return false
		}
		t.shell.Grow(-v.Size(), 0)
		if s == t.Function() && s.Prev != nil {
			s.Vars[name] = &Variable{}
		} else {
			delete(s.Vars, name)
		}
		break
	}
	t.forgetComputed(name)
	return true
}

// forgetComputed makes a computed variable an ordinary one, as unset does.
func (t *Table) forgetComputed(name string) {
	for _, s := range computedNames() {
		if s != name {
			continue
		}
		if t.ordinary == nil {
			t.ordinary = map[string]bool{}
		}
		t.ordinary[name] = true
	}
}
