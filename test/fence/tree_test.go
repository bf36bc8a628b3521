package fence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the module's directory, found from the test's own.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("no go.mod two levels up: %v", err)
	}
	return dir
}

// source is one Go file of the module.
type source struct {
	rel   string // slash-separated, below the module
	fset  *token.FileSet
	file  *ast.File
	bytes []byte
}

func (s source) dir() string {
	if i := strings.LastIndexByte(s.rel, '/'); i >= 0 {
		return s.rel[:i]
	}
	return ""
}
func (s source) isTest() bool         { return strings.HasSuffix(s.rel, "_test.go") }
func (s source) at(n ast.Node) string { return s.rel + ":" + itoa(s.fset.Position(n.Pos()).Line) }
func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }
func (s source) below(places ...string) bool {
	for _, p := range places {
		if s.rel == p || strings.HasPrefix(s.rel, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// walk calls f for every file of the module that is ours: no hidden directory,
// no build output.
func walk(t *testing.T, f func(rel string, data []byte)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && rel != ".ci" && strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "dist" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || rel == ".git" { // .git is a file in a git worktree
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f(rel, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources parses every Go file of the module, tests included.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	walk(t, func(rel string, data []byte) {
		if !strings.HasSuffix(rel, ".go") || strings.Contains(rel, "testdata/") {
			return
		}
		file, err := parser.ParseFile(fset, rel, data, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{rel: rel, fset: fset, file: file, bytes: data})
	})
	if len(all) < 10 {
		t.Fatalf("found only %d Go files", len(all))
	}
	return all
}

// lineOf is the text of the line that n begins on.
func (s source) lineOf(n ast.Node) string {
	return strings.Split(string(s.bytes), "\n")[s.line(n.Pos())-1]
}

func (s source) imports(path string) bool {
	for _, p := range s.importNames() {
		if p == path {
			return true
		}
	}
	return false
}

// importNames maps the names a file uses to the import paths behind them.
func (s source) importNames() map[string]string {
	names := map[string]string{}
	for _, imp := range s.file.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		name := p[strings.LastIndexByte(p, '/')+1:]
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = p
	}
	return names
}

// uses calls f for every pkg.Name of an imported package in the file.
func (s source) uses(f func(importPath, name string, at ast.Node)) {
	names := s.importNames()
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Obj == nil {
			if p, ok := names[id.Name]; ok {
				f(p, sel.Sel.Name, sel)
			}
		}
		return true
	})
}
