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

	"egressd/policy/files"
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
	at := machine(r, dir)
	at.Resolve = Resolve
	if filepath.IsAbs(r.StateHome) {
		at.Secret = append(at.Secret, Resolve(filepath.Join(r.StateHome, "egressd")))
	}
	return at, nil
}

// Elsewhere reports the place of a run on another machine, which sees a copy of
// the working directory. What its program keeps and logs in with is not there.
func Elsewhere(r Run) (files.Place, error) {
	at, err := Find(r)
	at.Elsewhere, at.State, at.Login = true, nil, nil
	return at, err
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
