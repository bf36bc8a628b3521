package fence

import (
	"go/ast"
	"go/token"
	"testing"
)

// verdictsElsewhere are the places outside policy/ that may make a verdict that
// lets something pass, each with its reason.
var verdictsElsewhere = map[string]string{}

// TestOnlyPolicyAllows: who may talk to whom is answered in one place. Outside
// it, code compares verdicts and hands decisions on; it neither makes a verdict
// nor changes one.
func TestOnlyPolicyAllows(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.isTest() || s.below("policy") {
			continue
		}
		compared := comparedVerdicts(s)
		bad := func(at ast.Node, what string) {
			if _, excused := verdictsElsewhere[s.rel]; excused {
				used[s.rel] = true
				return
			}
			t.Errorf("%s: %s: only policy/ decides that something may pass; ask Policy.Decide", s.at(at), what)
		}
		s.uses(func(pkg, name string, at ast.Node) {
			switch {
			case pkg != module+"/policy":
			case name == "Verdict":
				bad(at, "policy.Verdict is named, as if to make one")
			case (name == "Allow" || name == "Intercept") && !compared[at]:
				bad(at, "policy."+name+" is used for more than a comparison")
			}
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || a.Tok == token.DEFINE {
				return true
			}
			for _, l := range a.Lhs {
				if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "Verdict" {
					bad(l, "a verdict is changed")
				}
			}
			return true
		})
	}
	for place := range verdictsElsewhere {
		if !used[place] {
			t.Errorf("%s is excused and makes no verdict any more: remove it from the list", place)
		}
	}
}

// comparedVerdicts are the nodes of s that stand in a comparison or a case.
func comparedVerdicts(s source) map[ast.Node]bool {
	compared := map[ast.Node]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compared[n.X], compared[n.Y] = true, true
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				compared[e] = true
			}
		}
		return true
	})
	return compared
}
