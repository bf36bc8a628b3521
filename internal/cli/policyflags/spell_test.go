package policyflags

import "testing"

func TestSpell(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{[]string{"a.test", "b.test:22"}, "--allow a.test,b.test:22"},
		{[]string{"*.a.test"}, "--allow '*.a.test'"},
		{[]string{"GET https://a.test/x y'z", "a.test"}, `--allow a.test --allow 'GET https://a.test/x y'\''z'`},
	} {
		if got := Spell(tt.in); got != tt.want {
			t.Errorf("got %s want %s", got, tt.want)
		}
	}
}
