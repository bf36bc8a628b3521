package fence

import (
	"bytes"
	"go/ast"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxFileLines     = 400
	maxTestFileLines = 500
	maxFunctionLines = 100
)

func TestFileLength(t *testing.T) {
	for _, s := range sources(t) {
		most := maxFileLines
		if s.isTest() {
			most = maxTestFileLines
		}
		if n := bytes.Count(s.bytes, []byte("\n")); n > most {
			t.Errorf("%s has %d lines (at most %d): a room or a file is missing", s.rel, n, most)
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
func TestCommandLength(t *testing.T) {
	const mostOfMain = 60
	most := map[string]int{"cmd/launch": 800, "cmd/launch/ahead": 100, "cmd/egressd": 1700} // egressd: its help is its flags
	whole := map[string]int{}
	for _, s := range sources(t) {
		if !s.below("cmd") || strings.HasSuffix(s.rel, "_test.go") {
			continue
		}
		n := bytes.Count(s.bytes, []byte("\n"))
		if s.rel == s.dir()+"/main.go" && n > mostOfMain {
			t.Errorf("%s has %d lines (at most %d)", s.rel, n, mostOfMain)
		}
		whole[s.dir()] += n
	}
	for dir, n := range whole {
		if n > most[dir] {
			t.Errorf("%s has %d lines without tests (at most %d): what is more than wiring is a room", dir, n, most[dir])
		}
	}
}

// ARCHITECTURE.md is read in one go, in a window of 100 columns.
func TestArchitectureLength(t *testing.T) {
	const most, columns = 150, 100
	text, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > most {
		t.Errorf("ARCHITECTURE.md has %d lines (at most %d)", len(lines), most)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("ARCHITECTURE.md:%d has %d columns (at most %d)", i+1, n, columns)
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
