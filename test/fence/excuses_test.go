package fence

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

const (
	maxPackageLines = 4000 // without tests
	maxFields       = 15   // of a struct
	minFileLines    = 25
)

// offence is something too big or too small: a package by its directory, a
// struct by its package's directory and its name, a file by its path.
type offence struct{ rule, what string }

// excuses are the offences that stay, each with the reason. One that is mended
// fails the test until its line is gone.
var excuses = map[offence]string{
	{"struct", "cmd/egressd.options"}:                  "one field for each flag",
	{"struct", "internal/run/receipt/format.Contract"}: "one field for each member of a format that others have made",
	{"struct", "internal/run/receipt/format.Receipt"}:  "one field for each member of a format that others have made",
	{"struct", "internal/run/records.Process"}:         "one field for each member of a stored record",
	{"struct", "sandbox/vercel/api.Client"}:            "configuration and defaults of one client, all exported",
	{"struct", "sandbox/vercel/api.CreateRequest"}:     "one field for each member of the API's request",
	{"struct", "sandbox/vercel/api.Sandbox"}:           "one field for each member of the API's answer",
	{"struct", "sandbox/vercel/api.Session"}:           "one field for each member of the API's answer",
	{"struct", "sandbox/vercel/fake.Fault"}:            "one field for each thing that a test may break",
	{"struct", "sandbox/vercel/fake.createBody"}:       "one field for each member of the API's request",
	{"struct", "sandbox/vercel/fake.sandboxJSON"}:      "one field for each member of the API's answer",
	{"struct", "sandbox/vercel/fake.session"}:          "what the API tells of a session, and its machine; a test's own",
	{"struct", "sandbox/vercel/fake.sessionJSON"}:      "one field for each member of the API's answer",
	{"struct", "sandbox/vercel/fake.settings"}:         "one field for each setting of the API's sandboxes",
	{"struct", "sandbox/vercel/fake.snapshot"}:         "one field for each member of the API's answer",

	{"file", "internal/daemon/tokens/digest.go"}:      "one function, found by its name",
	{"file", "policy/nearest.go"}:                     "one function, found by its name",
	{"file", "sandbox/vercel/fake/machine/socket.go"}: "one function, found by its name",
}

// platform is a file name that says for which machines the file is.
var platform = regexp.MustCompile(`_(linux|darwin|unix|other|none|amd64|arm64|64|32)\.go$`)

func TestSizes(t *testing.T) {
	found := map[offence]string{}
	lines := map[string]int{}
	perPlatform := map[string]bool{} // the name of what the file is half of
	for _, s := range sources(t) {
		perPlatform[platform.ReplaceAllString(s.rel, ".go")] = platform.MatchString(s.rel) || perPlatform[platform.ReplaceAllString(s.rel, ".go")]
	}
	for _, s := range sources(t) {
		if s.isTest() || s.below("hermetic") { // a module of its own, with fences of its own
			continue
		}
		n := bytes.Count(s.bytes, []byte("\n"))
		lines[s.dir()] += n
		if n < minFileLines && s.file.Doc == nil && path.Base(s.rel) != "main.go" &&
			!perPlatform[platform.ReplaceAllString(s.rel, ".go")] && !bytes.HasPrefix(s.bytes, []byte("//go:build ")) {
			found[offence{"file", s.rel}] = fmt.Sprintf("has %d lines (at least %d): it belongs to the idea next to it", n, minFileLines)
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				if n := fields(st); n > maxFields {
					found[offence{"struct", s.dir() + "." + spec.Name.Name}] = fmt.Sprintf("has %d fields (at most %d): some of them are a type of their own", n, maxFields)
				}
			}
			return true
		})
	}
	for dir, n := range lines {
		if n > maxPackageLines {
			found[offence{"package", dir}] = fmt.Sprintf("has %d lines (at most %d): it is more than one room", n, maxPackageLines)
		}
	}
	for o, why := range found {
		if excuses[o] == "" {
			t.Errorf("%s %s %s. Mend it, or give the reason in excuses", o.rule, o.what, why)
		}
	}
	for o := range excuses {
		if found[o] == "" {
			t.Errorf("%s %s is excused and no longer offends: drop the line", o.rule, o.what)
		}
	}
}

// fields counts the fields of a struct; an embedded one is one.
func fields(st *ast.StructType) int {
	n := 0
	for _, f := range st.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

// What proxy holds is named in rooms one by one, so that a part of it that
// begins to lean on another is seen.
func TestProxyRoomsAreSpelled(t *testing.T) {
	for _, p := range listPackages(t) {
		if r := roomOf(p.rel()); strings.HasPrefix(p.rel(), "proxy") && r != nil && r.path != p.rel() {
			t.Errorf("%s has no row of its own in rooms", p.rel())
		}
	}
	for _, r := range rooms {
		for _, o := range r.ours {
			if strings.HasPrefix(r.path, "proxy") && strings.HasSuffix(o, "...") {
				t.Errorf("the row of %s names %s: name each package", r.path, o)
			}
		}
	}
}
