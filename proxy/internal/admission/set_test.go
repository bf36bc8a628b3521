package admission

import "testing"

func TestSet(t *testing.T) {
	var s Set[string]
	if s.Enter("early") {
		t.Error("the zero Set lets somebody in")
	}
	<-s.Gone() // nobody is in
	s.Open()
	if !s.Enter("a") || !s.Enter("b") || s.Len() != 2 {
		t.Errorf("%d are in an open set of two", s.Len())
	}
	gone := s.Gone()
	if left := s.Close(); len(left) != 2 || s.Enter("late") {
		t.Errorf("a closed set: %q", left)
	}
	s.Leave("a")
	select {
	case <-gone:
		t.Error("it is empty while one is in")
	default:
	}
	s.Leave("b")
	<-gone
	s.Open()
	if !s.Enter("again") {
		t.Error("a set that was opened again stays closed")
	}
}

func TestBudget(t *testing.T) {
	var b Budget
	if !b.Take(HeldBytes) || b.Take(1) || b.Change(1) {
		t.Error("the bound is not the bound")
	}
	if !b.Change(-10) || !b.Take(10) || b.Used() != HeldBytes {
		t.Errorf("%d bytes are taken", b.Used())
	}
	if b.GiveBack(HeldBytes); b.Used() != 0 {
		t.Errorf("%d bytes are taken when all were given back", b.Used())
	}
}
