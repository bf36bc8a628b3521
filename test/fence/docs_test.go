package fence

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// maxSurface is how many lines `go doc` of a room may print: one screen.
const maxSurface = 35

func byPackage(t *testing.T) map[string][]source {
	t.Helper()
	m := map[string][]source{}
	for _, s := range sources(t) {
		if !s.isTest() {
			m[s.dir()] = append(m[s.dir()], s)
		}
	}
	return m
}

func TestOnePackageDoc(t *testing.T) {
	for dir, files := range byPackage(t) {
		var with []string
		for _, s := range files {
			if s.file.Doc == nil {
				continue
			}
			with = append(with, s.rel)
			text := s.file.Doc.Text()
			if s.file.Name.Name != "main" && !strings.HasPrefix(text, "Package "+s.file.Name.Name+" ") {
				t.Errorf("%s: the package doc begins %q, not \"Package %s ...\"", s.rel, firstLine(text), s.file.Name.Name)
			}
		}
		if len(with) != 1 {
			t.Errorf("%s: exactly one file carries the package doc, here %d do: %v", dir, len(with), with)
		}
	}
}

func firstLine(s string) string { l, _, _ := strings.Cut(s, "\n"); return l }

// TestSurface counts what `go doc` lists: types, functions (constructors too)
// and groups of constants and variables.
func TestSurface(t *testing.T) {
	for dir, files := range byPackage(t) {
		if files[0].file.Name.Name == "main" {
			continue
		}
		var asts []*ast.File // of its own: package doc takes away what is not exported
		fset := token.NewFileSet()
		for _, s := range files {
			file, err := parser.ParseFile(fset, s.rel, s.bytes, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			asts = append(asts, file)
		}
		p, err := doc.NewFromFiles(fset, asts, module+"/"+dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		n := len(p.Types) + len(p.Funcs) + len(p.Consts) + len(p.Vars)
		for _, typ := range p.Types {
			n += len(typ.Funcs) + len(typ.Consts) + len(typ.Vars)
		}
		if n > maxSurface {
			t.Errorf("go doc ./%s prints %d lines (at most %d): the room does more than one thing", dir, n, maxSurface)
		}
	}
}

// Every exported thing outside tests and commands says what it is.
func TestExportedHaveDocs(t *testing.T) {
	for dir, files := range byPackage(t) {
		if files[0].file.Name.Name == "main" {
			continue
		}
		for _, s := range files {
			for _, d := range s.file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !selfEvident(d.Name.Name) {
						t.Errorf("%s: %s.%s has no doc comment", s.at(d), dir, d.Name.Name)
					}
				case *ast.GenDecl:
					for _, sp := range d.Specs {
						if ts, ok := sp.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil && ts.Comment == nil {
							t.Errorf("%s: %s.%s has no doc comment", s.at(ts), dir, ts.Name.Name)
						}
					}
				}
			}
		}
	}
}

// selfEvident are the methods whose interface already says what they do.
func selfEvident(name string) bool {
	switch name {
	case "Error", "String", "Unwrap", "Close", "Read", "Write", "Len", "Less", "Swap", "Is", "As":
		return true
	}
	return false
}

func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return true
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if gen, ok := typ.(*ast.IndexExpr); ok {
		typ = gen.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}
