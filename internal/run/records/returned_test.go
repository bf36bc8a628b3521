package records

import (
	"fmt"
	"testing"
)

func TestReturned(t *testing.T) {
	s, _ := open(t)
	if got, err := s.Returned("/w"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	must(t, s.AddReturned("/w", map[string][32]byte{"a": {1}, "b": {2}}))
	must(t, s.AddReturned("/w", map[string][32]byte{"b": {3}}))
	must(t, s.AddReturned("/other", map[string][32]byte{"c": {4}}))
	if got, err := s.Returned("/w"); err != nil || len(got) != 2 || got["a"] != [32]byte{1} || got["b"] != [32]byte{3} {
		t.Errorf("%v, %v", got, err)
	}
	many := map[string][32]byte{}
	for i := range maxSums + 10 {
		many[fmt.Sprint(i)] = [32]byte{5}
	}
	must(t, s.AddReturned("/w", many))
	if got, err := s.Returned("/w"); err != nil || len(got) != maxSums {
		t.Errorf("%d, %v", len(got), err)
	}
}
