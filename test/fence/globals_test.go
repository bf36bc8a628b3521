package fence

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestNoMutableGlobals finds package variables that code changes after start:
// those of a type made for changing (sync, atomic, channels), and those that a
// function assigns to. Tables that are only read pass.
func TestNoMutableGlobals(t *testing.T) {
	byDir := map[string][]source{}
	for _, s := range sources(t) {
		if !s.isTest() {
			byDir[s.dir()+" "+s.file.Name.Name] = append(byDir[s.dir()+" "+s.file.Name.Name], s)
		}
	}
	for _, files := range byDir {
		vars := map[string]*ast.ValueSpec{}
		for _, s := range files {
			packageVars(s, func(name *ast.Ident, spec *ast.ValueSpec) {
				vars[name.Name] = spec
				if why := madeForChange(spec); why != "" && name.Name != "_" {
					t.Errorf("%s: var %s is %s: shared state belongs in a struct that somebody owns", s.at(name), name.Name, why)
				}
			})
		}
		for _, s := range files {
			assignments(s, vars, func(id *ast.Ident) {
				t.Errorf("%s: %s is a package variable and is changed here", s.at(id), id.Name)
			})
		}
	}
}

func packageVars(s source, f func(*ast.Ident, *ast.ValueSpec)) {
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, sp := range g.Specs {
			spec := sp.(*ast.ValueSpec)
			for _, name := range spec.Names {
				f(name, spec)
			}
		}
	}
}

// madeForChange names what in the declaration exists to be changed.
func madeForChange(spec *ast.ValueSpec) string {
	why := ""
	look := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.CallExpr:
			return false
		case *ast.ChanType:
			why = "a channel"
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && (id.Name == "sync" || id.Name == "atomic") {
				why = "a " + id.Name + "." + n.Sel.Name
			}
		}
		return true
	}
	if spec.Type != nil {
		ast.Inspect(spec.Type, look)
	}
	for _, v := range spec.Values {
		if call, ok := v.(*ast.CallExpr); ok {
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "make" {
				why = "made empty, to be filled"
			}
			continue
		}
		ast.Inspect(v, look)
	}
	return why
}

// assignments calls f where a function changes one of vars.
func assignments(s source, vars map[string]*ast.ValueSpec, f func(*ast.Ident)) {
	target := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.StarExpr:
				e = x.X
				continue
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.Ident:
				spec := vars[x.Name]
				// A local of the same name resolves to its own declaration.
				if spec != nil && (x.Obj == nil || x.Obj.Decl == spec) {
					f(x)
				}
			}
			return
		}
	}
	for _, d := range s.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, l := range n.Lhs {
						target(l)
					}
				}
			case *ast.IncDecStmt:
				target(n.X)
			}
			return true
		})
	}
}
