package places

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

var errTooManyLinks = errors.New("too many symbolic links")

// Names remembers what names are and where they lead, for the planning of one start,
// which asks about the same few directories again and again. It is made by NewNames,
// and for one goroutine.
type Names struct {
	leads  map[string]lead
	kinds  map[string]uint32
	listed map[string]map[string]bool // of directories that were listed, the names in them, see fold
	list   lister
}

// NewNames makes Names that remember nothing.
func NewNames() *Names {
	return &Names{leads: make(map[string]lead, 128), kinds: make(map[string]uint32, 256), listed: map[string]map[string]bool{}}
}

// lead is where a name leads.
type lead struct {
	real  string
	links []string // the symbolic links on the way, by their real names
	err   error
}

// Resolve reports where a clean, absolute path leads when its links are followed. It
// fails if nothing is there.
func (n *Names) Resolve(path string) (real string, err error) {
	real, _, err = n.resolve(path)
	return real, err
}

// IsDir reports whether path itself, without following a link, is a directory.
func (n *Names) IsDir(path string) bool { return n.kind(path) == unix.S_IFDIR }

// IsFile reports whether path itself, without following a link, is a regular file.
func (n *Names) IsFile(path string) bool { return n.kind(path) == unix.S_IFREG }

// resolve follows the links of a clean, absolute path. After an error, links holds
// those that were followed.
func (n *Names) resolve(path string) (real string, links []string, err error) {
	l := n.lead(path, maxLinks)
	return l.real, l.links, l.err
}

func (n *Names) lead(path string, left int) lead {
	if path == "/" {
		return lead{real: "/"}
	}
	if l, ok := n.leads[path]; ok {
		return l
	}
	if left == 0 {
		return lead{err: errTooManyLinks}
	}
	dir, base := filepath.Split(path)
	l := n.lead(filepath.Clean(dir), left)
	if l.err == nil {
		if l.real = filepath.Join(l.real, base); l.real == path {
			l.real = path // one string for both
		}
		l = n.follow(l, left)
	}
	n.leads[path] = l
	return l
}

// follow goes on from l, whose last element may be a link.
func (n *Names) follow(l lead, left int) lead {
	switch n.kind(l.real) {
	case 0:
		l.err = unix.ENOENT
		return l
	case unix.S_IFLNK:
	default:
		return l
	}
	target, err := os.Readlink(l.real)
	switch {
	case errors.Is(err, unix.EINVAL):
		return l // no link any more
	case err != nil:
		l.err = err
		return l
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(l.real), target)
	}
	links := append(l.links[:len(l.links):len(l.links)], l.real)
	l = n.lead(filepath.Clean(target), left-1)
	l.links = append(links, l.links...)
	return l
}

// kind reports what path is (unix.S_IFDIR, ...), without following a link; 0: it is
// not there, or out of this user's reach.
func (n *Names) kind(path string) uint32 {
	k, ok := n.kinds[path]
	if ok {
		return k
	}
	dir, base := filepath.Split(path)
	var names map[string]bool
	if len(n.listed) > 0 && dir != "/" {
		names = n.listed[dir[:len(dir)-1]]
	}
	if names == nil || names[fold(base)] {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			k = st.Mode & unix.S_IFMT
		}
	}
	n.kinds[path] = k
	return k
}

// expect lists dir, of which many names will be asked for: one list costs less than
// a look at each. Where a list need not hold all that is there (file systems over a
// network, or of a program), it is not asked.
func (n *Names) expect(dir string) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return
	}
	switch fs.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
	default:
		return
	}
	names, plain := map[string]bool{}, true
	whole := n.list.each(dir, func(name []byte, _ uint8) {
		key := fold(string(name))
		plain = plain && key != ""
		names[key] = true
	})
	if whole && plain {
		n.listed[dir] = names
	}
}

// fold is name in small letters; "": it is not ASCII.
//
// Threat: a directory that takes names in any case (ext4 casefold) holds .SSH, which
// answers to .ssh and is not in the list under that name -> names are compared in
// small letters, and a directory in which one is not ASCII, whose small letters only
// the kernel knows, is not listed. Nothing is left over.
func fold(name string) string {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return ""
		}
	}
	return strings.ToLower(name)
}
