package stage

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"egressd/policy/files"
)

// Held is a path that was not sent. A directory ends in a slash, and stands for
// all that is in it.
type Held struct {
	Path   string
	Secret bool  // the rules about files hide it
	Err    error // why it cannot be read; nil: it was not tried
}

// maxHeld bounds the list of Held, of each kind.
const maxHeld = 1000

// Held lists what was not sent because of the rules about files or because it
// cannot be read, at most a thousand of each; secret and unreadable count them
// all.
func (t *Tree) Held() (list []Held, secret, unreadable int) {
	return t.held, t.secret, t.unreadable
}

func (t *Tree) hold(h Held) {
	n := &t.unreadable
	if h.Secret {
		n = &t.secret
	}
	if *n++; *n <= maxHeld {
		t.held = append(t.held, h)
	}
}

// decide is the answer of the rules about files for a path of the tree. Where
// names differ in the case of their letters alone, some file systems see one.
func (c *Config) decide(name string) files.Decision {
	if c.Decide == nil {
		return files.Decision{Access: files.ReadWrite}
	}
	d := c.Decide(name)
	if lower := strings.ToLower(name); lower != name {
		if e := c.Decide(lower); e.Access < d.Access && (e.Reason == files.RunsLater || e.Reason == files.Credential) {
			return e
		}
	}
	return d
}

// closed notes a directory or file that cannot be read. The error is err, unless
// it is one of permission.
//
// A run is not refused for it: a data directory of another user's is common. But
// what is not known is not replaced or deleted either.
func (s *scanner) closed(name string, mode fs.FileMode, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	shown := name
	if mode.IsDir() {
		shown += "/"
	}
	s.tree.hold(Held{Path: shown, Err: err})
	if s.tree.unknown == nil {
		s.tree.unknown = map[string]bool{}
	}
	s.tree.unknown[name] = true
	return s.add(&Entry{Path: name, Mode: mode & (fs.ModeType | fs.ModePerm), shared: true})
}

// readable is an error if the regular file cannot be opened.
func (s *scanner) readable(name string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o444 == 0o444 {
		return nil // an access control list shows when it is sent
	}
	f, err := s.tree.root.OpenFile(name, openRead, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// mayNot reports why what comes back must not change name; "" if it may.
func (t *Tree) mayNot(name string) string {
	for at := name; at != "."; at = path.Dir(at) {
		if t.unknown[at] {
			return "what is here cannot be read, and was not sent"
		}
	}
	d := t.config.decide(name)
	if d.Access == files.ReadWrite {
		return ""
	}
	switch d.Reason {
	case files.RunsLater:
		return "it is run or obeyed here later; --write with this path lets it come back"
	case files.Credential:
		return "it may keep a secret; --write with this path lets it come back"
	case files.NoPolicy, files.Named, files.Workspace, files.HomeDir, files.System, files.Temporary, files.State, files.Socket:
	}
	return "a rule about files (" + d.Rule.At + ") makes it " + d.Access.String()
}
