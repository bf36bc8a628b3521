package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"egressd/sandbox"
	"egressd/sandbox/process"
)

// The paths that a machine finds its things at.
const (
	Home       = "/vercel"              // of images; their working directory, too
	LegacyHome = "/home/vercel-sandbox" // of the old runtimes
	LegacyCwd  = "/vercel/sandbox"      // their working directory
	Shared     = "/.vercel"             // what the owner shows it, see Disk.SharedDir
)

// userID is the user of every machine if the owner is root.
const userID = 1000

// places are the directories that are a machine's own. Everything else that it
// sees is the host's, to be read only. The last ones are where programs for such
// machines keep their work: only root could make them in a virtual machine, and
// no user can here.
var places = []string{"vercel", "tmp", "home", "root", "warrant", "workspace", "app", "data", "shared"}

// User is the account that programs in a machine run as.
type User struct {
	Name string
	Home string // Home or LegacyHome
}

// The users of images and of the old runtimes.
var (
	ImageUser  = User{"ubuntu", Home}
	LegacyUser = User{"vercel-sandbox", LegacyHome}
)

// Disk is what a machine keeps: a directory of the host. It may be copied and
// removed while no machine runs on it.
type Disk struct {
	dir   string
	name  User
	names sync.Mutex // serialises changes of users and groups
}

// NewDisk makes an empty disk at dir, which must not exist.
func NewDisk(dir string, user User) (*Disk, error) {
	d := &Disk{dir: dir, name: user}
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nil, err
	}
	err := d.prepare()
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

func (d *Disk) prepare() error {
	if err := os.Chmod(d.dir, 0o711); err != nil { // #nosec: others only pass through
		return err
	}
	for _, p := range append([]string{"shared.owner", "empty"}, places...) {
		if err := d.mkdir(p, 0o755); err != nil {
			return err
		}
	}
	if err := d.mkdir("tmp", 0o777|fs.ModeSticky); err != nil {
		return err
	}
	if d.name == LegacyUser {
		for _, p := range []string{LegacyCwd, LegacyHome} {
			if err := d.mkdir(p, 0o755); err != nil {
				return err
			}
		}
	}
	uid := strconv.Itoa(os.Getuid())
	gid := strconv.Itoa(os.Getgid())
	if d.user() != nil {
		uid, gid = strconv.Itoa(userID), strconv.Itoa(userID)
	}
	passwd := "root:x:0:0:root:/root:/bin/bash\n" + d.name.Name + ":x:" + uid + ":" + gid + "::" + d.name.Home + ":/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
	group := "root:x:0:\n" + d.name.Name + ":x:" + gid + ":\nnogroup:x:65534:\n"
	return errors.Join(d.file("passwd", passwd), d.file("group", group))
}

func (d *Disk) file(name, text string) error {
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { // #nosec: everybody inside reads it
		return err
	}
	return os.Chmod(path, 0o644) // #nosec: whatever the umask
}

func (d *Disk) mkdir(name string, mode fs.FileMode) error {
	path := filepath.Join(d.dir, name)
	if err := os.Mkdir(path, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	if u := d.user(); u != nil {
		return os.Lchown(path, int(u.UID), int(u.GID))
	}
	return nil
}

// user is the user that everything inside runs as; nil: the owner.
func (d *Disk) user() *sandbox.Cred {
	if os.Geteuid() != 0 {
		return nil
	}
	return &sandbox.Cred{UID: userID, GID: userID}
}

// Reachable says why machines could not have their disks below dir: root's run
// as another user, who must get there. Nil: they can.
func Reachable(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		fi, err := os.Stat(at)
		if err != nil {
			return err
		}
		if fi.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s: sandboxes of root run as user %d, who may not pass through %s: use another directory, or chmod o+x it", dir, userID, at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// SharedDir is a directory that the machine sees, and only sees, at Shared.
func (d *Disk) SharedDir() string { return filepath.Join(d.dir, "shared.owner") }

// binds are what a machine sees of d, and in the place of the directories that
// are hidden.
func (d *Disk) binds(hidden []string) []process.Bind {
	b := []process.Bind{
		{Source: d.SharedDir(), Target: Shared, ReadOnly: true},
		{Source: filepath.Join(d.dir, "passwd"), Target: "/etc/passwd", ReadOnly: true},
		{Source: filepath.Join(d.dir, "group"), Target: "/etc/group", ReadOnly: true},
	}
	for _, p := range places {
		b = append(b, process.Bind{Source: filepath.Join(d.dir, p), Target: "/" + p})
	}
	for _, h := range hidden {
		fi, err := os.Stat(h)
		first, _, _ := strings.Cut(strings.TrimPrefix(h, "/"), "/")
		if err != nil || !fi.IsDir() || !filepath.IsAbs(h) || slices.Contains(append([]string{"", "tmp", "var", "proc", "sys", "dev", "run"}, places...), first) {
			continue // it is not there, or is hidden already
		}
		b = append(b, process.Bind{Source: filepath.Join(d.dir, "empty"), Target: filepath.Clean(h), ReadOnly: true})
	}
	return b
}

// Outside reports where path, which is one of the machine's own, lies on the
// host while no machine runs.
func (d *Disk) Outside(path string) string { return filepath.Join(d.dir, filepath.Join("/", path)) }

// Adopt gives what is below path to the machine's user.
func (d *Disk) Adopt(path string) error {
	u := d.user()
	if u == nil {
		return nil
	}
	return filepath.WalkDir(d.Outside(path), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(u.UID), int(u.GID))
	})
}

// Copy makes a disk at dir, which must not exist, that holds what d holds.
// Sockets, pipes and devices are left out.
func (d *Disk) Copy(dir string) (*Disk, error) {
	to, err := NewDisk(dir, d.name)
	if err != nil {
		return nil, err
	}
	a, err := d.accounts()
	if err == nil {
		err = to.save(a)
	}
	for _, p := range places {
		if err == nil {
			err = copyTree(filepath.Join(d.dir, p), filepath.Join(dir, p))
		}
	}
	if err != nil {
		return nil, errors.Join(err, to.Remove())
	}
	return to, nil
}

// Move makes dir, which must not exist, d's place.
func (d *Disk) Move(dir string) error {
	if err := d.unmount(); err != nil {
		return err
	}
	if err := os.Rename(d.dir, dir); err != nil {
		return err
	}
	d.dir = dir
	return nil
}

// Bytes reports how much the files of d hold.
func (d *Disk) Bytes() int64 {
	var n int64
	_ = filepath.WalkDir(d.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be seen is not counted
		}
		if fi, err := e.Info(); err == nil {
			n += fi.Size()
		}
		return nil
	})
	return n
}

// Remove removes d, even if a program inside removed its permissions.
func (d *Disk) Remove() error { return removeTree(d.dir) }

// copyTree copies what is in the directory from into the directory to. It
// follows no link.
func copyTree(from, to string) error {
	var dirs []func() error // their modes and times, when they are full
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		switch {
		case fi.IsDir():
			if err := os.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			dirs = append(dirs, func() error { return dress(target, fi) })
		case fi.Mode().IsRegular():
			if err := copyFile(path, target); err != nil {
				return err
			}
			return dress(target, fi)
		case fi.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return errors.Join(os.Symlink(link, target), own(target, fi))
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		err = errors.Join(err, dirs[i]())
	}
	return err
}

// dress gives path the owner, mode and time that fi shows.
func dress(path string, fi fs.FileInfo) error {
	if err := own(path, fi); err != nil {
		return err
	}
	if err := os.Chmod(path, fi.Mode()); err != nil {
		return err
	}
	return os.Chtimes(path, fi.ModTime(), fi.ModTime())
}

func own(path string, fi fs.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(st.Uid), int(st.Gid))
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrPermission) {
		// The owner took its own right to read away.
		fi, serr := os.Lstat(from)
		if serr != nil {
			return serr
		}
		if err := os.Chmod(from, fi.Mode()|0o400); err != nil {
			return err
		}
		in, err = os.Open(from)
		err = errors.Join(err, os.Chmod(from, fi.Mode()))
	}
	if err != nil {
		return fmt.Errorf("copy a disk: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
