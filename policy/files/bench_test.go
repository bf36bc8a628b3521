package files

import "testing"

// Every start applies a section once.
func BenchmarkIn(b *testing.B) {
	s := Section{Write: rules("/srv/out")}
	pl := Place{Workspace: work, Home: home, State: []string{"~/.claude"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.In(pl); err != nil {
			b.Fatal(err)
		}
	}
}

// A tier asks about some hundred names.
func BenchmarkDecide(b *testing.B) {
	g, err := Section{}.In(Place{Workspace: work, Home: home})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		g.Decide(work + "/.git/hooks/pre-commit")
	}
}
