// Package stage decides which files of a workspace are sent to another machine,
// and brings what changed there back without overwriting local changes:
//
//	tree, err := stage.Scan(ctx, stage.Config{Dir: dir})
//	...
//	defer tree.Close()
//	for _, e := range tree.Entries() { ... } // send each; tree.Open reads it
//	report, err := tree.Mirror(ctx, archive, aside)
//
// It works on files only and knows neither a network nor an API.
package stage

import (
	"crypto/sha256"
	"io/fs"
	"os"

	"egressd/policy/files"
)

// Entry is one path of a tree. Directories are entries only when they are
// empty: the others follow from their files.
type Entry struct {
	Path string      // below the top, with slashes, clean
	Mode fs.FileMode // its kind and permissions: a regular file, a link or a directory
	Size int64       // bytes, of a regular file
	Link string      // the target of a link

	sum    [sha256.Size]byte // of the content that was sent
	sent   bool              // sum is known: the file was read to its end
	shared bool              // not sent, but there: what comes back must not replace it
	there  bool              // the other side has it already
}

// Config says which files of a workspace travel.
type Config struct {
	Dir string // the workspace
	// Skip names files and directories that travel in neither direction, at any
	// depth, whatever the case of their letters. Nil: .git, node_modules, .warrant.
	Skip []string
	// Receive sends nothing: all that comes back is new.
	Receive bool
	// All sends also what .gitignore leaves out.
	All bool

	// Decide is asked about every path, either way: what is hidden is not sent,
	// and only what is read-write is changed by what comes back. Nil: everything
	// travels, as in a copy that a person asked for.
	Decide func(path string) files.Decision

	// Known holds what came back of earlier runs, see Report.Sums: a local file
	// that still has that sum is unchanged since, and may be replaced although it
	// was not sent. Nil: nothing is known.
	Known map[string][sha256.Size]byte

	MaxFiles int   // entries, either way; 0: 500,000
	MaxBytes int64 // bytes of content, either way; 0: 8 GiB

	// Progress is called from time to time, and at the end of each part, with the
	// files and bytes so far. May be nil.
	Progress func(files int, bytes int64)
}

// DefaultSkip is the set of names that never travel.
func DefaultSkip() []string { return []string{".git", "node_modules", ".warrant"} }

// Tree is a workspace as it was sent. Its methods are not safe for concurrent
// use.
type Tree struct {
	config  Config
	root    *os.Root
	entries map[string]*Entry
	order   []string // the paths of entries, sorted
	skipped int      // files that .gitignore left out

	hook func(s step, name string) // of a test; else nil

	held               []Held // see Held
	secret, unreadable int
	unknown            map[string]bool // paths that cannot be read
}

// Close gives up the workspace's directory.
func (t *Tree) Close() error { return t.root.Close() }

// Skips lists the names that never travel.
func (t *Tree) Skips() []string { return t.config.Skip }

// MaxBytes is Config.MaxBytes.
func (t *Tree) MaxBytes() int64 { return t.config.MaxBytes }

// Left reports how many files and directories .gitignore kept from being sent.
func (t *Tree) Left() int { return t.skipped }

// Entries lists what is to be sent, sorted by path.
func (t *Tree) Entries() []Entry {
	all := make([]Entry, 0, len(t.order))
	for _, name := range t.order {
		if e := t.entries[name]; !e.shared && !e.there {
			all = append(all, *e)
		}
	}
	return all
}

// Size reports how many files and bytes are sent.
func (t *Tree) Size() (files int, bytes int64) {
	for _, e := range t.entries {
		if !e.shared {
			files++
			bytes += e.Size
		}
	}
	return files, bytes
}
