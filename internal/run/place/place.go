// Package place says where on this machine a run takes place, for the rules about
// files: its directories, without links, and what its program must write.
//
//	at, err := place.Find(place.Run{Dir: dir, Env: env, Argv: argv})
//	gate, err := policy.Files(at)
//	d := gate.Decide(place.Resolve("/home/me/link"))
package place

import (
	"fmt"
	"path/filepath"
	"strings"

	"egressd/policy/files"
	"egressd/sandbox"
)

// Run is what decides the place.
type Run struct {
	Dir       string   // working directory; "" is the current one
	Env       []string // the program's whole environment, KEY=VALUE
	Argv      []string // an agent in it may write its state
	StateHome string   // the launcher's XDG_STATE_HOME; "" is below HOME
}

// Find reports the place of r. A HOME that is not absolute is none.
func Find(r Run) (files.Place, error) {
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return files.Place{}, fmt.Errorf("working directory: %w", err)
	}
	at := files.Place{Workspace: Resolve(dir), Resolve: Resolve, State: sandbox.AgentState(r.Argv)}
	if home := lookUp(r.Env, "HOME"); filepath.IsAbs(home) {
		at.Home = Resolve(home)
	}
	at.State = append(at.State, caches(r.Env, at.Home)...)
	if filepath.IsAbs(r.StateHome) {
		at.Secret = append(at.Secret, Resolve(filepath.Join(r.StateHome, "egressd")))
	}
	return at, nil
}

// Resolve reports where path leads when the links in it are followed, as far as it
// exists. A relative path is one of the current directory.
func Resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for head := path; ; head = filepath.Dir(head) {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, rest)
		}
		if head == filepath.Dir(head) {
			return path
		}
		rest = filepath.Join(filepath.Base(head), rest)
	}
}

// caches lists the caches that the environment puts elsewhere than below HOME,
// where the list of package files has them.
//
// Threat: a variable names the home directory itself, or one above it, so that
// all of it becomes writable -> such a value counts for nothing. Left over: the
// person's environment is trusted to name caches, as it is outside.
func caches(env []string, home string) (out []string) {
	for _, c := range []struct {
		name  string
		below []string
	}{
		{"XDG_CACHE_HOME", []string{""}}, {"GOCACHE", []string{""}}, {"GOMODCACHE", []string{""}}, {"GOPATH", []string{"pkg"}},
		{"CARGO_HOME", []string{"registry", "git"}}, {"GRADLE_USER_HOME", []string{""}},
	} {
		dir := filepath.Clean(lookUp(env, c.name))
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, sub := range c.below {
			if p := Resolve(filepath.Join(dir, sub)); files.Check(p) == nil && !above(p, home) && filepath.Dir(p) != "/" {
				out = append(out, p)
			}
		}
	}
	return out
}

// above reports whether path is dir or a directory above it.
func above(path, dir string) bool {
	return path == dir || path == "/" || strings.HasPrefix(dir, path+"/")
}

func lookUp(env []string, name string) (value string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v // the last one counts, as for the program
		}
	}
	return value
}
