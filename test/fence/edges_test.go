package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "egressd"

// onlyIn says which third-party trees belong to one place.
var onlyIn = []struct{ tree, place, reason string }{
	{"github.com/elazarl/goproxy", "proxy/internal/forward", "its hooks must stay behind our own framing and Decide"},
	{"github.com/vishvananda/netns", "netns", "a tainted thread must never be reused; netns wraps that once"},
	{"go.yaml.in/yaml/v3", "policy", "one parser of operator text, strict, with positions"},
	{"github.com/miekg/dns", "dnsfilter", "one reader of DNS wire format (and the fake upstream of test/e2e)"},
	{"github.com/prometheus", "internal/daemon/metrics", "every series is made where its labels are known to be bounded"},
}

// onlyInAlso are the test-side exceptions to onlyIn.
var onlyInAlso = map[string][]string{
	"github.com/miekg/dns": {"test/e2e"},
}

type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p pkg) rel() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// listed is what the go command says once, for Linux, where every file is built, and
// with the tests of both storeys.
var listed = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-tags=system", "-json=ImportPath,Dir,Name,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

// listPackages are the packages of the module.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 5 {
		t.Fatalf("go list found only %d packages", len(pkgs))
	}
	return pkgs
}

func covers(pattern, p string) bool {
	if pattern == "..." {
		return true
	}
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return p == tree || strings.HasPrefix(p, tree+"/")
	}
	return p == pattern
}

// roomOf finds the most particular row for p: rows are in order, the first that covers wins.
func roomOf(p string) *room {
	for i := range rooms {
		if covers(rooms[i].path, p) {
			return &rooms[i]
		}
	}
	return nil
}

func isStd(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".") && first != module
}

// objection reports why r must not import imp, or "".
func (r *room) objection(self, imp string) string {
	switch {
	case isStd(imp):
		if slices.Contains(r.std, imp) {
			return "standard package banned here"
		}
	case imp == module || strings.HasPrefix(imp, module+"/"):
		rel := strings.TrimPrefix(imp, module+"/")
		if rel == self || covers(r.path, rel) {
			return ""
		}
		if !slices.ContainsFunc(r.ours, func(o string) bool { return covers(o, rel) }) {
			return "not an edge of this room"
		}
	case strings.HasPrefix(imp, "golang.org/x/sys/"):
	default:
		if !slices.ContainsFunc(r.outside, func(o string) bool { return imp == o || strings.HasPrefix(imp, o+"/") }) {
			return "third-party package not named for this room"
		}
	}
	return ""
}

func TestImportEdges(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		rel := p.rel()
		r := roomOf(rel)
		if r == nil {
			t.Errorf("%s: no room covers this package; add a row to rooms with what it may import and why", rel)
			continue
		}
		seen[r.path] = true
		for _, imp := range p.Imports {
			if why := r.objection(rel, imp); why != "" {
				t.Errorf("%s imports %s: %s (%s)", rel, imp, why, r.reason)
			}
		}
		for _, only := range onlyIn {
			for _, imp := range p.Imports {
				in := rel == only.place || slices.ContainsFunc(onlyInAlso[only.tree], func(also string) bool { return covers(also+"/...", rel) })
				if (imp == only.tree || strings.HasPrefix(imp, only.tree+"/")) && !in {
					t.Errorf("%s imports %s, which belongs to %s: %s", rel, imp, only.place, only.reason)
				}
			}
		}
		if path.Dir(rel) == "internal" && slices.Contains([]string{"util", "utils", "common", "types", "helpers", "misc"}, path.Base(rel)) {
			t.Errorf("%s: a package is named after its one mechanism", rel)
		}
	}
	for _, r := range rooms {
		if !seen[r.path] && r.path != "policy/presets" {
			t.Errorf("rooms names %s, which no longer exists: drop or correct the row", r.path)
		}
	}
}

// Tests may lean on more than code may, but not across the one line that keeps
// the doors honest.
func TestTestImportEdges(t *testing.T) {
	for _, p := range listPackages(t) {
		rel := p.rel()
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			other, ours := strings.CutPrefix(imp, module+"/")
			switch {
			case !ours:
			case rel == "policy" && other != "policy" && !strings.HasPrefix(other, "policy/"):
				t.Errorf("the tests of policy import %s: even they need nothing but policy", other)
			case strings.HasPrefix(rel, "test/e2e") && !strings.HasPrefix(other, "test/"):
				t.Errorf("test/e2e imports %s: it is a black box and shares no code with what it drives", other)
			}
		}
	}
}

func TestOnlyInPathsExist(t *testing.T) {
	var all []string
	for _, p := range listPackages(t) {
		all = append(all, p.Imports...)
	}
	for _, only := range onlyIn {
		if !slices.ContainsFunc(all, func(imp string) bool { return imp == only.tree || strings.HasPrefix(imp, only.tree+"/") }) {
			t.Errorf("onlyIn names %s, which nothing imports any more: drop the row", only.tree)
		}
	}
}
