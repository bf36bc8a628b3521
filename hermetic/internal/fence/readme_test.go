package fence

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"egressd/hermetic"
)

// section is what README.md says under a heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("README.md has no section %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// names are what stands in backquotes in the first cells or items of a list.
func names(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		cell, ok := strings.CutPrefix(line, "| `")
		if !ok {
			continue
		}
		cell, _, _ = strings.Cut("`"+cell, " | ")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return all
}

// README.md lists the commands that there are, each once.
func TestCommandList(t *testing.T) {
	table, err := hermetic.Commands(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(table))
	if got := names(section(t, "Commands")); !slices.Equal(got, want) {
		t.Errorf("README.md lists\n%q\nthere are\n%q", got, want)
	}
}

// README.md lists the fuzz targets that there are.
func TestFuzzList(t *testing.T) {
	var want []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && strings.HasPrefix(f.Name.Name, "Fuzz") {
				want = append(want, s.dir+" "+f.Name.Name)
			}
		}
	}
	slices.Sort(want)
	if got := names(section(t, "Fuzz targets")); !slices.Equal(got, want) {
		t.Errorf("README.md lists\n%q\nthere are\n%q", got, want)
	}
}
