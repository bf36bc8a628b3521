package find

import (
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// maxDepth bounds how deep directories are walked.
const maxDepth = 2000

// visit is one file that is looked at.
type visit struct {
	path  string
	start string // the place that the walk began at
	depth int
	fi    fs.FileInfo
	node  inode.Inode
	prune bool
}

// base is the last part of the path.
func (v *visit) base() string {
	t := strings.TrimRight(v.path, "/")
	if t == "" {
		return "/"
	}
	return t[strings.LastIndexByte(t, '/')+1:]
}

// ancestor is a directory that the walk is in.
type ancestor struct {
	dev, ino uint64
	path     string
	up       *ancestor
}

func (s *search) start(name string) {
	if name == "" {
		s.Fault("%s: No such file or directory", gnu.Quote(""))
		return
	}
	s.walk(&visit{path: name, start: name}, nil, 0)
}

// look asks what a file is; a link that leads nowhere is itself.
func (s *search) look(v *visit) error {
	fi, err := s.FS.Lstat(s.Path(v.path))
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 && (s.follow == 'L' || s.follow == 'H' && v.depth == 0) {
		if to, e := s.FS.Stat(s.Path(v.path)); e == nil {
			fi = to
		} else if command.Reason(e) == command.Reason(syscall.ELOOP) {
			err = e
		}
	}
	if err == nil {
		v.fi, v.node = fi, inode.Of(fi)
	}
	return err
}

func (s *search) walk(v *visit, up *ancestor, dev uint64) {
	if s.quit || s.Ctx.Err() != nil {
		return
	}
	if err := s.look(v); err != nil {
		s.Fault("%s: %s", gnu.Quote(v.path), command.Reason(err))
		return
	}
	if v.depth == 0 {
		dev = v.node.Dev
	}
	if !v.fi.IsDir() {
		s.apply(v)
		return
	}
	for a := up; a != nil; a = a.up {
		if a.dev == v.node.Dev && a.ino == v.node.Ino && s.follow != 'P' {
			s.Fault("File system loop detected; %s is part of the same file system loop as %s.", gnu.Quote(v.path), gnu.Quote(a.path))
			return
		}
	}
	if !s.depth {
		s.apply(v)
	}
	if !v.prune && !s.quit && (s.max < 0 || v.depth < s.max) && (!s.oneFS || v.node.Dev == dev) {
		s.children(v, &ancestor{v.node.Dev, v.node.Ino, v.path, up}, dev)
	}
	if s.depth && !s.quit {
		s.apply(v)
	}
}

func (s *search) children(v *visit, up *ancestor, dev uint64) {
	if v.depth > maxDepth {
		s.Fault("%s: %s", gnu.Quote(v.path), command.Reason(syscall.ENAMETOOLONG))
		return
	}
	list, err := s.FS.ReadDir(s.Path(v.path))
	if err != nil {
		s.Fault("%s: %s", gnu.Quote(v.path), command.Reason(err))
		return
	}
	prefix := v.path
	if !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	for _, e := range list {
		s.walk(&visit{path: prefix + e.Name(), start: v.start, depth: v.depth + 1}, up, dev)
	}
	for _, b := range s.batches {
		if b.inDir {
			b.flush()
		}
	}
}

func (s *search) apply(v *visit) {
	if v.depth >= s.min && (s.max < 0 || v.depth <= s.max) && s.Ctx.Err() == nil {
		s.test(v)
	}
}
