package fetch

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/vfs"
)

// Create opens a file for writing, made where it is missing. how is O_TRUNC,
// O_APPEND or O_EXCL.
func Create(c *command.Call, full string, how int) (vfs.File, error) {
	return c.FS.OpenFile(full, syscall.O_WRONLY|syscall.O_CREAT|how, 0o666&^c.Umask)
}

// WriteFile makes or empties a file and fills it.
func WriteFile(c *command.Call, full string, fill func(io.Writer) error) error {
	f, err := Create(c, full, syscall.O_TRUNC)
	if err != nil {
		return err
	}
	err = fill(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Mkdirs makes the directories above full with perm.
func Mkdirs(c *command.Call, full string, perm fs.FileMode) error {
	dir := path.Dir(full)
	if dir == "/" || dir == "." {
		return nil
	}
	if info, err := c.FS.Stat(dir); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return nil
	}
	if err := Mkdirs(c, dir, perm); err != nil {
		return err
	}
	err := c.FS.Mkdir(dir, perm&^c.Umask)
	if info, serr := c.FS.Stat(dir); err != nil && serr == nil && info.IsDir() {
		return nil
	}
	return err
}

// SafeName is the last element of what a server calls a file; "" is none.
//
// Threat: a server names the file "../.bashrc" or "a\nb" -> only what follows the
// last slash or backslash counts, without control characters, and "." and ".."
// are none -> a name that begins with a dot, in the directory that was chosen.
func SafeName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
	if name == "." || name == ".." || len(name) > 255 {
		return ""
	}
	return name
}

// UnusedName is name, or name.1 and on, the first that is not there.
func UnusedName(c *command.Call, name string, most int) (string, bool) {
	for i := range most + 1 {
		try := name
		if i > 0 {
			try = fmt.Sprintf("%s.%d", name, i)
		}
		if _, err := c.FS.Lstat(c.Path(try)); err != nil {
			return try, true
		}
	}
	return "", false
}
