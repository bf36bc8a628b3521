package fence

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "egressd/hermetic"

// room says what the packages of a path may import.
type room struct {
	path    string   // below the module; a trailing "/..." is a tree
	outside []string // import path prefixes from outside that it may import; x/sys is free
	std     []string // standard packages it may not import
	reason  string
}

// The ways to the machine that are closed to commands.
var machine = []string{"os", "os/exec", "os/user", "os/signal", "net", "net/http", "io/ioutil", "path/filepath", "syscall/js", "plugin", "log", "log/slog"}

// rooms are in order: the first that covers a package counts.
var rooms = []room{
	{".", nil, []string{"os/exec", "os/user", "net/http", "path/filepath"}, "joins the others: os is there for the type of the standard input, net for the type of a connection"},
	{"vfs", nil, []string{"net", "net/http", "os/exec", "os/user"}, "the one way to a file: it knows no command and no shell"},
	{"limits", nil, machine, "counters: everything asks it"},
	{"command", nil, without(machine, "net"), "what a command is given; net is there for the type of a connection"},
	{"gitignore", nil, machine, "rules, pure: rg asks them of files, egressd of a workspace"},
	{"cmd/...", nil, []string{"os/exec", "net", "net/http"}, "wiring"},
	{"internal/fence", nil, nil, "tests alone"},
	{"internal/gnu/gnutest", nil, []string{"os/exec", "net", "net/http"}, "for tests of commands"},
	{"internal/fetch", []string{"golang.org/x/net"}, without(machine, "net", "net/http"), "HTTP over the connection that the session provides; it dials nothing: no net.Dial, no http.Client"},
	{"internal/curl", nil, without(machine, "net/http"), "as fetch, for names of methods and fields"},
	{"internal/wget", nil, without(machine, "net/http"), "as fetch, for names of methods and fields"},
	{"internal/shell/stream", []string{}, without(machine, "os"), "os is there for the worker's own standard input: its reads must be interruptible"},
	{"internal/shell", []string{"mvdan.cc/sh/v3/syntax"}, without(machine, "os"), "knows the parser of mvdan.cc/sh and not its interpreter; os is there for the type of the standard input"},
	{"internal/shell/...", []string{"mvdan.cc/sh/v3/syntax"}, machine, "the parts of the language"},
	{"internal/jq/...", []string{"github.com/itchyny/gojq"}, machine, "a command, with a parser of jq"},
	{"internal/yq", []string{"github.com/itchyny/gojq", "go.yaml.in/yaml/v3"}, machine, "a command, with parsers of jq and YAML"},
	{"internal/...", nil, machine, "commands are Go functions over the session's files and streams, with no way to the machine"},
}

func without(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

func (r room) covers(dir string) bool {
	if tree, ok := strings.CutSuffix(r.path, "/..."); ok {
		return dir == tree || strings.HasPrefix(dir, tree+"/")
	}
	return dir == r.path
}

func roomOf(dir string) *room {
	for i := range rooms {
		if rooms[i].covers(dir) {
			return &rooms[i]
		}
	}
	return nil
}

// Nothing of egressd outside this module; no way to the machine for commands.
func TestImports(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		r := roomOf(s.dir)
		if r == nil {
			t.Errorf("%s: no room covers this package; add it to rooms with its reason", s.rel)
			continue
		}
		used[r.path] = true
		for _, spec := range s.file.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if why := r.objection(s, imp); why != "" {
				t.Errorf("%s imports %s: %s (%s)", s.rel, imp, why, r.reason)
			}
		}
	}
	for _, r := range rooms {
		if !used[r.path] {
			t.Errorf("%s: a room without a package", r.path)
		}
	}
}

func (r *room) objection(s source, imp string) string {
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case imp == module || strings.HasPrefix(imp, module+"/"):
		if s.dir == "internal/gnu" && path.Dir(imp) != module+"/internal/shell" && strings.HasPrefix(imp, module+"/internal/") {
			return "what all tools share knows no tool"
		}
		return ""
	case first == "egressd":
		return "this module knows nothing of the product"
	case s.test:
		return ""
	case !strings.Contains(first, "."):
		if slices.Contains(r.std, imp) {
			return "not in this room"
		}
	case strings.HasPrefix(imp, "golang.org/x/sys/"):
	case !slices.ContainsFunc(r.outside, func(o string) bool { return imp == o || strings.HasPrefix(imp, o+"/") }):
		return "not a package from outside that this room may use"
	}
	return ""
}
