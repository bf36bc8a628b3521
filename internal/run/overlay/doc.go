// Package overlay reads what an overlay over a directory holds, and applies it:
//
//	store, err := overlay.Make(dir, workspace)
//	... a run whose changes to workspace go to store.Upper() ...
//	changes, total, err := store.Changes(max)
//	err = store.Remove() // or store.Keep(), and later:
//	store, err = overlay.Open(dir)
//	result, err := store.Apply(gate, max)
//
// The upper directory is overlayfs's own: new and changed files as they are, a
// whiteout (a character device 0:0) in the place of what was removed, and the
// attribute user.overlay.opaque on a directory that replaces another one.
//
// Threat: the program lays out the changes: links in the way, devices, names that a
// shell or an editor obeys later, a tree without end -> names are walked below one
// directory, entry by entry, and no link is followed; only files, links and
// directories are applied; the file gate judges every name; entries are counted.
// Left over: what an applied file says. Read the list, and the files.
package overlay

import "time"

// Change is one difference between the directory and what the overlay shows.
type Change struct {
	Kind byte   // 'A' added, 'M' modified, 'D' deleted
	Path string // from the directory on, with a slash in front
}

// Refusal is a change that was not applied.
type Refusal struct {
	Change
	Why string
}

// Result is what Apply did.
type Result struct {
	Applied []Change
	Refused []Refusal
}

// Gate judges a name in the directory, absolute: "" lets it be written, anything
// else says why not.
type Gate func(path string) (why string)

// Bounds of a Store. Implementation constants.
const (
	maxEntries = 1_000_000 // of one walk
	maxDepth   = 200       // directories below each other
)

// about is what a Store remembers, in the file about.json.
type about struct {
	Version   int       `json:"version"`
	Workspace string    `json:"workspace"`
	Started   time.Time `json:"started"`
}
