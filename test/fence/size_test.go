package fence

import (
	"bytes"
	"go/ast"
	"go/format"
	"testing"
)

const (
	maxFileLines     = 500
	softFileLines    = 400
	maxFunctionLines = 100
)

func TestFileLength(t *testing.T) {
	for _, s := range sources(t) {
		n := bytes.Count(s.bytes, []byte("\n"))
		switch {
		case n > maxFileLines:
			t.Errorf("%s has %d lines (at most %d): a room or a file is missing", s.rel, n, maxFileLines)
		case n > softFileLines:
			t.Logf("%s has %d lines; over %d it starts to hold two ideas", s.rel, n, softFileLines)
		}
	}
}

func TestFunctionLength(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines (at most %d)", s.at(f), f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// A command is wiring: flags to config to run.
func TestMainLength(t *testing.T) {
	const most = 60
	for _, s := range sources(t) {
		if s.below("cmd") && s.rel == s.dir()+"/main.go" {
			if n := bytes.Count(s.bytes, []byte("\n")); n > most {
				t.Errorf("%s has %d lines (at most %d)", s.rel, n, most)
			}
		}
	}
}

func TestGofmt(t *testing.T) {
	for _, s := range sources(t) {
		want, err := format.Source(s.bytes)
		if err != nil {
			t.Errorf("%s: %v", s.rel, err)
		} else if !bytes.Equal(want, s.bytes) {
			t.Errorf("%s is not gofmt clean", s.rel)
		}
	}
}
