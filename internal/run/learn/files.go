package learn

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/policy/files"
)

// maxRefusals bounds the files that are learned, and maxPathBytes the name of one.
const (
	maxRefusals  = 1024
	maxPathBytes = 1024
)

// refusal is a file that the run was refused.
type refusal struct {
	path   string
	wanted files.Access
	reason files.Reason
}

// file remembers what a refused file teaches.
//
// Threat: the program inside asks for ~/.ssh, or for a shell's start-up file, so
// that the next run gets it -> what keeps a secret, runs later or is named by a
// rule is a doubt. Left over: any other file that it asked for is learned; whoever
// uses the policy reads it first.
func (r *Recorder) file(e *event.FileRefused) {
	f := refusal{path: e.Path, wanted: e.Wanted, reason: e.Reason}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case slices.Contains(r.paths, f):
	case len(r.paths) >= maxRefusals || len(f.path) > maxPathBytes:
		r.over = true
	case files.Check(files.Literal(f.path)) == nil:
		r.paths = append(r.paths, f)
	}
}

// learned reports whether a policy that was learned opens the file.
func (f refusal) learned() bool {
	if !utf8.ValidString(f.path) {
		return false // YAML has no word for it
	}
	switch f.reason {
	case files.Workspace, files.HomeDir, files.System, files.State, files.Temporary:
		return true
	}
	return false
}

// writeFiles writes the files section.
func (r *Recorder) writeFiles(b *bytes.Buffer) {
	s := r.Files
	for _, f := range r.paths {
		rule := files.Rule{Path: files.Literal(f.path)}
		switch {
		case !f.learned():
		case f.wanted == files.ReadWrite:
			s = s.Join(files.Section{Write: []files.Rule{rule}})
		default:
			s = s.Join(files.Section{Read: []files.Rule{rule}})
		}
	}
	if s.IsZero() {
		return
	}
	b.WriteString("files:\n")
	for _, list := range s.Lists() {
		if len(list.Rules) == 0 {
			continue
		}
		fmt.Fprintf(b, "  %s:\n", list.Access.Key())
		var done []string
		for _, rule := range list.Rules {
			if !slices.Contains(done, rule.Path) {
				done = append(done, rule.Path)
				fmt.Fprintf(b, "    - %s\n", scalar(rule.Path))
			}
		}
	}
	if s.Home != files.HomeUnset {
		fmt.Fprintf(b, "  home: %s\n", s.Home)
	}
}

// fileDoubts spells the files that a person must decide about.
func (r *Recorder) fileDoubts() (lines []string) {
	for _, f := range r.paths {
		if f.learned() {
			continue
		}
		lines = append(lines, fmt.Sprintf("#   - %s   # files.%s: %s", scalar(cli.Safe(files.Literal(f.path))), f.wanted.Key(), f.reason))
	}
	return lines
}
