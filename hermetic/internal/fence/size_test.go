package fence

import (
	"go/ast"
	"strings"
	"testing"
)

const (
	maxFile     = 400
	maxFunction = 100
	maxPackage  = 4000
	maxFields   = 15
	minFile     = 25
)

const oneCall = "one call of one command: a field for each option"

// excused are exceptions: a package, file, "DIR.Type" or "DIR.Func", with its reason.
var excused = map[string]string{
	"internal/awk.interp":        "the state of one program: its special variables are fields, so that a field of a record costs no map",
	"internal/awk.record":        "the record and how it is split, which special variables change one by one",
	"internal/cp.copier":         oneCall,
	"internal/curl.stats":        "one field for each variable of --write-out",
	"internal/date.parser":       "one field for each part of a date, as the words name them",
	"internal/dd.dumper":         oneCall,
	"internal/diff.differ":       oneCall,
	"internal/du.usage":          oneCall,
	"internal/find.search":       oneCall,
	"internal/grep.options":      oneCall,
	"internal/grep.scan":         "the state of one file: read in the innermost loop",
	"internal/gzip.packer":       oneCall,
	"internal/jq.JqOptions":      oneCall,
	"internal/ls.listing":        oneCall,
	"internal/numfmt.numfmtWant": oneCall,
	"internal/patch.patcher":     oneCall,
	"internal/sed.machine":       "the state of one script: read in the innermost loop",
	"internal/split.splitter":    oneCall,
	"internal/tar.archiver":      oneCall,
	"internal/tree.treeCall":     oneCall,
	"internal/xargs.xargsCall":   oneCall,
	"internal/yq.yqWant":         oneCall,
}

func TestSizes(t *testing.T) {
	packages, needed := map[string]int{}, map[string]bool{}
	over := func(what string, n, most int) {
		if needed[what] = true; excused[what] == "" {
			t.Errorf("%s: %d (at most %d): split it at the idea, or give a reason in excused", what, n, most)
		}
	}
	for _, s := range sources(t) {
		if s.lines > maxFile {
			over(s.rel, s.lines, maxFile)
		}
		if !s.test {
			packages[s.dir] += s.lines
			if s.lines < minFile && !platform(s) {
				if needed[s.rel] = true; excused[s.rel] == "" {
					t.Errorf("%s has %d lines (at least %d): it belongs to another file, or give a reason in excused", s.rel, s.lines, minFile)
				}
			}
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFunction {
					over(s.dir+"."+f.Name.Name, n, maxFunction)
				}
			}
		}
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok && st.Fields.NumFields() > maxFields {
				over(s.dir+"."+spec.Name.Name, st.Fields.NumFields(), maxFields)
			}
			return true
		})
	}
	for dir, n := range packages {
		if n > maxPackage {
			over(dir, n, maxPackage)
		}
	}
	for what := range excused {
		if !needed[what] {
			t.Errorf("%s needs no excuse any more", what)
		}
	}
}

// platform reports whether a file may be short: for one system, or the doc and the
// table of a package.
func platform(s source) bool {
	return strings.HasSuffix(s.rel, "_linux.go") || strings.HasSuffix(s.rel, "_other.go") || s.file.Doc != nil
}
