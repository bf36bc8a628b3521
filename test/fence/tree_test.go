package fence

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

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

// text is one file of the checkout, whatever it holds.
type text struct {
	rel  string // slash-separated, below the module
	data []byte
}

// texts are all files that are ours, read once: no hidden file or directory but
// those of CI, no build output.
var texts = sync.OnceValues(func() ([]text, error) {
	top := filepath.Join("..", "..")
	var all []text
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
		if !d.Type().IsRegular() || rel == ".git" { // a file in a work tree of its own
			return nil
		}
		data, err := os.ReadFile(p)
		all = append(all, text{rel, data})
		return err
	})
	return all, err
})

// walk calls f for every file of the checkout that is ours.
func walk(t *testing.T, f func(rel string, data []byte)) {
	t.Helper()
	all, err := texts()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		f(x.rel, x.data)
	}
}

// parsed are all Go files, parsed once.
var parsed = sync.OnceValues(func() ([]source, error) {
	files, err := texts()
	if err != nil {
		return nil, err
	}
	var all []source
	fset := token.NewFileSet()
	for _, x := range files {
		if !strings.HasSuffix(x.rel, ".go") || strings.Contains(x.rel, "testdata/") {
			continue
		}
		file, err := parser.ParseFile(fset, x.rel, x.data, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		all = append(all, source{rel: x.rel, fset: fset, file: file, bytes: x.data})
	}
	return all, nil
})

// sources are all Go files of the module, tests included. Nobody changes them.
func sources(t *testing.T) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
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
