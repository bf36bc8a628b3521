package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"egressd/hermetic/gitignore"
	"egressd/policy/files"
)

// Scan lists a workspace. Files that git tracks are sent even where a
// .gitignore names them. Device files, FIFOs and sockets are left out. The
// caller closes the tree.
//
// Threat: the workspace holds what an agent wrote: links that lead out of it, a
// .git whose configuration names programs, endless trees -> links are sent as
// links, everything is opened below one os.Root, git is not run, and entries
// and bytes are counted; what the rules about files hide is not sent. Left over:
// a secret in a file of another name, or in one that a rule shows.
func Scan(ctx context.Context, c Config) (*Tree, error) {
	if c.Skip == nil {
		c.Skip = DefaultSkip()
	}
	if c.MaxFiles <= 0 {
		c.MaxFiles = 500_000
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 8 << 30
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if c.Receive {
		return &Tree{config: c, root: root, entries: map[string]*Entry{}}, nil
	}
	s := scanner{ctx: ctx, tree: &Tree{config: c, root: root, entries: map[string]*Entry{}}}
	if !c.All {
		s.tracked = s.index()
		s.exclude()
	}
	if err := s.walk(".", false); err != nil {
		root.Close()
		return nil, fmt.Errorf("workspace %s: %w", c.Dir, err)
	}
	slices.Sort(s.tree.order)
	slices.SortFunc(s.tree.held, func(a, b Held) int { return strings.Compare(a.Path, b.Path) })
	return s.tree, nil
}

type scanner struct {
	ctx     context.Context
	tree    *Tree
	rules   gitignore.Matcher
	tracked map[string]bool // paths, and the directories that they are in
	sent    int
	bytes   int64
}

// maxIndex bounds a git index.
const maxIndex = 256 << 20

// index reads which files git tracks; a workspace without a repository, or with
// one whose index cannot be read, has none.
func (s *scanner) index() map[string]bool {
	data, err := s.read(".git/index", maxIndex)
	if err != nil {
		return nil
	}
	for _, hash := range []int{20, 32} {
		tracked, err := gitignore.Tracked(data, hash)
		if err != nil {
			continue
		}
		for name := range tracked {
			for dir := path.Dir(name); dir != "." && !tracked[dir]; dir = path.Dir(dir) {
				tracked[dir] = true
			}
		}
		return tracked
	}
	return nil
}

func (s *scanner) exclude() {
	if text, err := s.read(".git/info/exclude", gitignore.MaxFile); err == nil {
		s.rules.Add("", text)
	}
}

// read reads a regular file of the workspace.
func (s *scanner) read(name string, limit int64) ([]byte, error) {
	info, err := s.tree.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fs.ErrInvalid
	}
	f, err := s.tree.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// walk adds what is below dir, "." or "a/b". hidden: the rules hide dir, and what
// they show in it is sent.
func (s *scanner) walk(dir string, hidden bool) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	base := dir
	if dir == "." {
		base = ""
	}
	kept := s.rules.Len()
	defer func() { s.rules.Cut(kept) }()
	if text, err := s.read(path.Join(dir, ".gitignore"), gitignore.MaxFile); err == nil && !s.tree.config.All {
		s.rules.Add(base, text)
	}
	list, err := s.list(dir)
	if errors.Is(err, fs.ErrNotExist) && base != "" {
		return nil // gone since it was listed
	}
	if err != nil && base != "" {
		return s.closed(base, fs.ModeDir, err)
	}
	if err != nil {
		return err
	}
	before := s.sent
	for _, d := range list {
		if err := s.visit(path.Join(base, d.Name()), d, hidden); err != nil {
			return err
		}
	}
	if s.sent == before && base != "" && !hidden {
		return s.add(&Entry{Path: base, Mode: fs.ModeDir})
	}
	return nil
}

func (s *scanner) list(dir string) ([]fs.DirEntry, error) {
	f, err := s.tree.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(s.tree.config.MaxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return list, nil
}

func (s *scanner) visit(name string, d fs.DirEntry, within bool) error {
	if s.tree.config.skips(d.Name()) {
		return nil
	}
	ignored := !s.tracked[name] && s.rules.Ignored(name, d.IsDir())
	if d.IsDir() {
		if ignored {
			s.tree.skipped++
			return nil
		}
		return s.walk(name, s.hidden(name, true, within))
	}
	info, err := s.tree.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone since it was listed
	}
	if err != nil {
		return s.closed(name, d.Type(), err)
	}
	e := &Entry{Path: name, Mode: info.Mode() & (fs.ModeType | fs.ModePerm), shared: ignored}
	switch {
	case ignored:
		s.tree.skipped++
	case s.hidden(name, false, within):
		e.shared = true
	case info.Mode().IsRegular():
		e.Size = info.Size()
		if err := s.readable(name, info); err != nil {
			return s.closed(name, info.Mode(), err)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		if e.Link, err = s.tree.root.Readlink(name); err != nil {
			return err
		}
	default:
		e.shared = true
	}
	return s.add(e)
}

// hidden reports whether the rules hide a path, and notes it. within: its
// directory is hidden, and was noted.
func (s *scanner) hidden(name string, dir, within bool) bool {
	if s.tree.config.decide(name).Access > files.Hidden {
		return false
	}
	switch {
	case within:
	case dir:
		s.tree.hold(Held{Path: name + "/", Secret: true})
	default:
		s.tree.hold(Held{Path: name, Secret: true})
	}
	return true
}

func (s *scanner) add(e *Entry) error {
	s.tree.entries[e.Path] = e
	s.tree.order = append(s.tree.order, e.Path)
	s.bytes += e.Size
	if !e.shared {
		s.sent++
	}
	switch {
	case len(s.tree.order) > s.tree.config.MaxFiles:
		return fmt.Errorf("more than %d files: leave some out with .gitignore", s.tree.config.MaxFiles)
	case s.bytes > s.tree.config.MaxBytes:
		return fmt.Errorf("more than %d bytes: leave some files out with .gitignore", s.tree.config.MaxBytes)
	}
	return nil
}

// skips reports whether files called name never travel.
func (c *Config) skips(name string) bool {
	return slices.ContainsFunc(c.Skip, func(s string) bool { return strings.EqualFold(s, name) })
}
