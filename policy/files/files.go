// Package files answers the second question of a sandbox: which files of the
// machine may a program read and write. Like its parent it is pure: it judges
// names and touches no file.
//
//	section := files.Section{Read: []files.Rule{{Path: "~/.aws/config", At: "--read #1"}}}
//	gate, err := section.In(files.Place{Workspace: "/home/me/work", Home: "/home/me"})
//	d := gate.Decide("/home/me/.aws/credentials") // Hidden, because of "secret ~/.aws"
//
// Rules come from the section, from the Place, and from a list that is part of
// the program (default.txt). The deepest path that covers a name decides; of two
// rules for one path, the one somebody wrote beats the list's.
//
// Names must be absolute and without links: a tier resolves links before it
// asks, and enforces the answer where the kernel resolves them (mounts, Landlock).
package files

import (
	"fmt"
	"path"
	"strings"
)

// Access is what a program may do with a file. The zero Access is Hidden.
type Access uint8

// Each Access includes those before it.
const (
	Hidden    Access = iota // the file, or the directory and all below it, is not there
	ReadOnly                // read and execute
	ReadWrite               // also write, create, rename and remove
)

// String reports "hidden", "read-only" or "read-write".
func (a Access) String() string {
	switch a {
	case ReadOnly:
		return "read-only"
	case ReadWrite:
		return "read-write"
	case Hidden:
	}
	return "hidden"
}

// Key reports what gives a path this Access: "hide", "read" or "write", the key in
// a policy and the flag. Of what a program wanted to do with a file, it is the verb.
func (a Access) Key() string {
	switch a {
	case ReadOnly:
		return "read"
	case ReadWrite:
		return "write"
	case Hidden:
	}
	return "hide"
}

// Home is what becomes of the home directory as a whole.
type Home uint8

// HomeUnset is the zero Home: the next document's, at last HomeReadOnly.
const (
	HomeUnset     Home = iota
	HomeReadOnly       // read-only, except what caches and agents must write
	HomeReadWrite      // read-write; credentials and files that run later stay as they are
	HomePrivate        // empty, and gone after the run
)

// String reports "ro", "rw", "private", or "" for HomeUnset.
func (h Home) String() string {
	switch h {
	case HomeReadOnly:
		return "ro"
	case HomeReadWrite:
		return "rw"
	case HomePrivate:
		return "private"
	case HomeUnset:
	}
	return ""
}

// ParseHome reads "ro", "rw" or "private".
func ParseHome(s string) (Home, error) {
	for h := HomeReadOnly; h <= HomePrivate; h++ {
		if s == h.String() {
			return h, nil
		}
	}
	return HomeUnset, fmt.Errorf("home %q is not known: write ro, rw or private", s)
}

// MarshalText is String.
func (h Home) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is ParseHome, but empty text is HomeUnset.
func (h *Home) UnmarshalText(text []byte) (err error) {
	*h = HomeUnset
	if len(text) > 0 {
		*h, err = ParseHome(string(text))
	}
	return err
}

// Rule is one path as it was written, and where.
type Rule struct {
	Path string
	At   string // "egress.yaml:3:5" or "--write #1"
}

// Section is the files section of a policy. The zero Section changes nothing of
// the built-in list.
type Section struct {
	Write []Rule // read and write
	Read  []Rule // read only
	Hide  []Rule // not there
	Home  Home
}

// List is one list of a Section.
type List struct {
	Access Access
	Rules  []Rule
}

// Lists are the lists of s, in the order in which they are written.
func (s Section) Lists() []List {
	return []List{{ReadWrite, s.Write}, {ReadOnly, s.Read}, {Hidden, s.Hide}}
}

// IsZero reports whether s says nothing.
func (s Section) IsZero() bool {
	return len(s.Write) == 0 && len(s.Read) == 0 && len(s.Hide) == 0 && s.Home == HomeUnset
}

// Join reports s and, after it, what other adds: rules add up, and s's Home
// wins.
func (s Section) Join(other Section) Section {
	s.Write = append(s.Write[:len(s.Write):len(s.Write)], other.Write...)
	s.Read = append(s.Read[:len(s.Read):len(s.Read)], other.Read...)
	s.Hide = append(s.Hide[:len(s.Hide):len(s.Hide)], other.Hide...)
	if s.Home == HomeUnset {
		s.Home = other.Home
	}
	return s
}

// Lines spells s as policy text, one line a fact, in order.
func (s Section) Lines() []string {
	var out []string
	for _, list := range s.Lists() {
		for _, r := range list.Rules {
			out = append(out, list.Access.Key()+": "+r.Path)
		}
	}
	if s.Home != HomeUnset {
		out = append(out, "home: "+s.Home.String())
	}
	return out
}

// Literal spells path as a rule that means it and no pattern.
func Literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// maxPathBytes is the longest path a rule may have, Linux's PATH_MAX.
const maxPathBytes = 4096

// Check reports what is wrong with a rule's path, and what to write instead.
func Check(p string) error {
	switch {
	case p == "":
		return fmt.Errorf("the path is empty: write a path such as ~/.cache or ./build")
	case len(p) > maxPathBytes:
		return fmt.Errorf("the path is longer than %d bytes", maxPathBytes)
	case strings.ContainsAny(p, "\x00\r\n"):
		return fmt.Errorf("path %q holds a control byte", p)
	case p[0] == '~' && p != "~" && !strings.HasPrefix(p, "~/"):
		return fmt.Errorf("path %q names another user's home: write it in full", p)
	}
	for seg := range strings.SplitSeq(p, "/") {
		if seg == ".." {
			return fmt.Errorf("path %q holds ..: write where it leads", p)
		}
		if strings.Contains(seg, "**") && seg != "**" {
			return fmt.Errorf("path %q: ** stands only for whole directories", p)
		}
		if _, err := path.Match(seg, "x"); err != nil {
			return fmt.Errorf("path %q is not a valid pattern: close the bracket, or write \\[", p)
		}
	}
	return nil
}
