// Package project finds the policy files that count without being named: .egress.yaml
// in the working directory and in each directory above it, and the user's own.
//
//	found, err := project.Find(project.Places{Dir: dir, Config: config, Trust: project.Store{Dir: state}})
//	for _, f := range found { docs = append(docs, f.Counts) }
//
// A project file comes from whoever wrote the repository, and a program of an earlier run
// may have made the user's own. Until the person trusts the digest of a file it can only
// tighten.
package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"egressd/policy"
)

// Name is the name of a project file.
const Name = ".egress.yaml"

// maxBytes bounds a project file: anybody may have written it.
const maxBytes = 1 << 20

// State is how far a file counts.
type State string

// States of a file.
const (
	Trusted   State = "trusted"   // all of it counts
	Changed   State = "changed"   // it was trusted and is another now: it only tightens
	Untrusted State = "untrusted" // it only tightens
)

// Places is where to look.
type Places struct {
	Dir    string // where to begin; "" is the current directory
	Config string // the user's own file; "": none
	Trust  Store
}

// File is a policy file that was found.
type File struct {
	Path   string // absolute; of the directory, links are resolved
	Digest string // SHA-256 of path and content, in hex
	State  State
	Whole  *policy.Document // all that it says
	Counts *policy.Document // what of it counts
}

// Only reports whether f can only tighten.
func (f *File) Only() bool { return f.State != Trusted }

// Find reports the project files, the nearest first, and then the user's own. A file
// that cannot be read or is not a policy is an error: it may hold a deny rule.
//
// Threat: what runs inside puts an empty project file nearer than the trusted one, so
// that its deny rules are not found the next time -> all files upwards count, each for
// itself. Left over: nothing.
func Find(at Places) ([]*File, error) {
	dir, err := filepath.Abs(at.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && at.Dir == "":
		return nil, fmt.Errorf("working directory: %w: it was removed: cd to one that is there", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("working directory: %w: make it first, or name another", err)
	case err != nil:
		return nil, fmt.Errorf("working directory: %w", err)
	}
	var found []*File
	for above := ""; dir != above; above, dir = dir, filepath.Dir(dir) {
		f, err := Read(filepath.Join(dir, Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = at.Trust.judge(f)
		}
		if err != nil {
			return nil, fmt.Errorf("%w\n%s was found from the working directory: --no-project goes without it", err, Name)
		}
		found = append(found, f)
	}
	if at.Config == "" {
		return found, nil
	}
	config, err := filepath.EvalSymlinks(at.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	var f *File
	if err == nil {
		f, err = Read(config)
	}
	if err == nil {
		err = at.Trust.judge(f)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n--no-project goes without it", err)
	}
	return append(found, f), nil
}

// Read reads the project file at path, once: what is trusted is what was shown. The
// error is fs.ErrNotExist if there is none.
//
// Threat: the file is a link to a secret, whose text the error would show, a device, or
// a pipe that nobody writes -> only a regular file of bounded size is read. It names a
// list or another file, whose content its digest does not cover -> refused.
// Left over: nothing.
func Read(path string) (*File, error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link: a project file is a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	data, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxBytes)
	}
	doc, err := policy.ParseFile(path, data)
	if err != nil {
		return nil, err
	}
	if len(doc.ListFiles()) > 0 || doc.Upstream.URL != "" {
		return nil, fmt.Errorf("%s: allow_file, deny_file and upstream_proxy name other files, which trust in this one does not cover: leave them out, or give the file with --policy", path)
	}
	return &File{Path: path, Digest: digest(path, data), State: Untrusted, Whole: doc, Counts: doc.Tightening()}, nil
}

func digest(path string, data []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "egressd project file 1\n%d\n%s\n", len(path), path)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
