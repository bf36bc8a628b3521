package places

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

var errTooManyLinks = errors.New("too many symbolic links")

// lead is where a name leads.
type lead struct {
	real  string
	links []string // the symbolic links on the way, by their real names
	err   error
}

// resolve follows the links of a clean, absolute path. After an error, links holds
// those that were followed.
func (f *finder) resolve(path string) (real string, links []string, err error) {
	l := f.lead(path, maxLinks)
	return l.real, l.links, l.err
}

func (f *finder) lead(path string, left int) lead {
	if path == "/" {
		return lead{real: "/"}
	}
	if l, ok := f.leads[path]; ok {
		return l
	}
	if left == 0 {
		return lead{err: errTooManyLinks}
	}
	l := f.lead(filepath.Dir(path), left)
	if l.err == nil {
		l.real = filepath.Join(l.real, filepath.Base(path))
		l = f.follow(l, left)
	}
	f.leads[path] = l
	return l
}

// follow goes on from l, whose last element may be a link.
func (f *finder) follow(l lead, left int) lead {
	target, err := os.Readlink(l.real)
	switch {
	case errors.Is(err, unix.EINVAL):
		return l // no link
	case err != nil:
		l.err = err
		return l
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(l.real), target)
	}
	links := append(l.links[:len(l.links):len(l.links)], l.real)
	l = f.lead(filepath.Clean(target), left-1)
	l.links = append(links, l.links...)
	return l
}

// kind reports what path is (unix.S_IFDIR, ...), without following a link; 0: it is
// not there. It is asked again and again about the same few directories, and looks
// once.
func (f *finder) kind(path string) uint32 {
	k, ok := f.kinds[path]
	if !ok {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			k = st.Mode & unix.S_IFMT
		}
		f.kinds[path] = k
	}
	return k
}

func (f *finder) isDir(path string) bool { return f.kind(path) == unix.S_IFDIR }
