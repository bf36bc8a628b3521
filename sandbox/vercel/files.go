package vercel

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"egressd/policy/files"
	"egressd/sandbox/vercel/stage"
)

// Workspace reports which directory of this machine a run in dir sends.
func Workspace(dir string) (string, error) {
	p, err := new(Backend).place(dir)
	return p.root, err
}

// decide returns what the rules about files say of a path of the workspace.
func (r *run) decide() (func(name string) files.Decision, error) {
	gate := r.spec.Files
	if gate == nil {
		var err error
		if gate, err = (files.Section{}).In(files.Place{Workspace: r.place.root, Elsewhere: true}); err != nil {
			return nil, err
		}
	}
	return func(name string) files.Decision { return gate.Decide(path.Join(r.place.root, name)) }, nil
}

// maxNamed is how many paths one message names.
const maxNamed = 10

// tellHeld says what was left out, why, and what to type.
func (r *run) tellHeld() {
	list, secret, unreadable := r.disk.tree.Held()
	names := func(secret bool, count int) string {
		var out []string
		for _, h := range list {
			if h.Secret == secret && len(out) < maxNamed {
				out = append(out, printable(h))
			}
		}
		if more := count - len(out); more > 0 {
			out = append(out, fmt.Sprintf("and %d more", more))
		}
		return strings.Join(out, ", ")
	}
	if secret > 0 {
		r.say("not sent, because it may keep secrets: %s. To send one all the same: --read PATH; --write PATH also lets changes to it come back", names(true, secret))
	}
	if unreadable > 0 {
		r.say("not sent, because you may not read it: %s. The program does not see it, and what it makes there does not come back. "+
			`To send it, make it yours: sudo chown -R "$USER" PATH; to leave it out without this message, name it in .gitignore`, names(false, unreadable))
	}
}

// printable is the path in one line, without control characters.
func printable(h stage.Held) string {
	if q := strconv.Quote(h.Path); q != `"`+h.Path+`"` {
		return q
	}
	return h.Path
}
