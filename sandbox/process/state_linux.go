package process

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/process/places"
)

// makeMissing makes directories in HOME that the program must write and cannot
// make, because HOME is read-only: what the agent keeps, and the caches of
// commands that are there. What cannot be made is left: the program says so then.
//
// Threat: root starts the program as another user, who has put a link in the
// place of such a directory -> no link leads out of HOME, and only what was made
// here gets that user for its owner.
//
// remove takes away what was made and is empty still, unless another run of launch
// has begun meanwhile: it may use the same directory.
func (c *config) makeMissing(user *sandbox.Cred) (remove func()) {
	home := realPath(c.home)
	if c.readOnly || !filepath.IsAbs(c.home) {
		return func() {}
	}
	shared := shareHome(home)
	remove = func() { _ = shared.Close() }
	var missing []string
	want := func(path string, commands ...string) {
		rel, ok := strings.CutPrefix(path, home+"/")
		if !ok || unix.Access(path, unix.F_OK) == nil || c.gate.Decide(path).Access != files.ReadWrite {
			return
		}
		if len(commands) == 0 || slices.ContainsFunc(commands, c.installed) {
			missing = append(missing, rel)
		}
	}
	for _, dir := range sandbox.AgentState(c.Argv) {
		want(filepath.Join(home, strings.TrimPrefix(dir, "~/")))
	}
	for i := range c.gate.Anchors() {
		a := &c.gate.Anchors()[i]
		if len(a.Commands) > 0 {
			want(a.Path, a.Commands...)
		}
	}
	if len(missing) == 0 {
		return remove
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return remove
	}
	var made []string
	for _, rel := range missing {
		made = append(made, makeOwned(root, rel, user)...)
	}
	c.names = places.NewNames() // it may remember that what was made is not there
	return func() {
		defer root.Close()
		defer shared.Close()
		if shared == nil || flock(shared, unix.LOCK_EX|unix.LOCK_NB) != nil {
			return // others are at it
		}
		for _, rel := range slices.Backward(made) {
			if fi, err := root.Lstat(rel); err == nil && fi.IsDir() {
				root.Remove(rel) //nolint:errcheck // it is in use by now
			}
		}
	}
}

// patience bounds the wait for somebody who has HOME to himself, which a launch that
// ends has for a moment.
const patience = time.Second

// shareHome takes a lock on HOME that every run of this tier shares. Nil: it cannot be
// had, and nothing depends on it but directories that are left empty.
func shareHome(home string) *os.File {
	f, err := os.Open(home)
	if err != nil {
		return nil
	}
	if flock(f, unix.LOCK_SH|unix.LOCK_NB) == nil {
		return f
	}
	had := make(chan error, 1)
	go func() { had <- flock(f, unix.LOCK_SH) }()
	select {
	case err = <-had:
	case <-time.After(patience):
		return nil // f stays with the goroutine: closing it would not wake it
	}
	if err != nil {
		_ = f.Close()
		return nil
	}
	return f
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR { //nolint:errorlint // as it comes from the kernel
			return err
		}
	}
}

// installed reports whether PATH holds the command. It is asked for a dozen at
// every start, so it remembers, and looks no closer than it must.
func (c *config) installed(command string) bool {
	is, ok := c.commands[command]
	if ok {
		return is
	}
	for _, dir := range c.programDirs() {
		if is = unix.Access(dir+"/"+command, unix.X_OK) == nil; is {
			break
		}
	}
	if c.commands == nil {
		c.commands = map[string]bool{}
	}
	c.commands[command] = is
	return is
}

// programDirs lists the directories of PATH that are there, each once.
func (c *config) programDirs() []string {
	if c.programs != nil {
		return c.programs
	}
	c.programs = []string{}
	for _, dir := range filepath.SplitList(c.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if real, err := c.names.Resolve(filepath.Clean(dir)); err == nil && !slices.Contains(c.programs, real) {
			c.programs = append(c.programs, real)
		}
	}
	return c.programs
}

// makeOwned makes rel and the directories above it, as far as they are missing.
func makeOwned(root *os.Root, rel string, user *sandbox.Cred) (made []string) {
	for i := range len(rel) + 1 {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		err := root.Mkdir(rel[:i], 0o700)
		switch {
		case err == nil:
			made = append(made, rel[:i])
			if user != nil && root.Lchown(rel[:i], int(user.UID), int(user.GID)) != nil {
				return made
			}
		case !os.IsExist(err):
			return made
		}
	}
	return made
}

// maxStateFile bounds a file that is copied for an agent, in bytes.
const maxStateFile = 64 << 20

// agentFiles copies what an agent replaces by rename to where it may do that, if
// the copy there is older, and reports the variables that tell it so. Nil: nothing
// of that kind is there, or HOME is writable.
//
// The file in HOME stays as it is: what an agent was taught inside, such as
// commands to run as its tools, does not reach the agent that a person starts
// outside.
func (c *config) agentFiles(user *sandbox.Cred) (env []string) {
	home := realPath(c.home)
	for _, f := range sandbox.AgentFiles(c.Argv) {
		dir := filepath.Join(home, strings.TrimPrefix(f.Dir, "~/"))
		if sandbox.EnvValue(c.env, f.Var) != "" || c.readOnly || !filepath.IsAbs(c.home) ||
			c.gate.Decide(home).Access != files.ReadOnly || c.gate.Decide(dir).Access != files.ReadWrite {
			continue
		}
		if err := renew(home, strings.TrimPrefix(f.File, "~/"), strings.TrimPrefix(f.Dir, "~/"), user); err == nil {
			env = append(env, f.Var+"="+filepath.Join(c.home, strings.TrimPrefix(f.Dir, "~/")))
		}
	}
	return env
}

// renew copies file into dir, both below home, unless what is there is newer.
// What the program may have put there is replaced, never followed.
func renew(home, file, dir string, user *sandbox.Cred) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	if fi, err := root.Lstat(dir); err != nil || !fi.IsDir() {
		return os.ErrInvalid
	}
	from, err := root.Stat(file)
	if err != nil || !from.Mode().IsRegular() || from.Size() > maxStateFile {
		return nil //nolint:nilerr // nothing to copy: the agent starts anew
	}
	to := filepath.Join(dir, filepath.Base(file))
	if fi, err := root.Lstat(to); err == nil && fi.Mode().IsRegular() && !fi.ModTime().Before(from.ModTime()) {
		return nil
	}
	in, err := root.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	part := to + ".launch"
	if err := root.RemoveAll(part); err != nil {
		return err
	}
	out, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxStateFile))
	if err == nil && user != nil {
		err = out.Chown(int(user.UID), int(user.GID))
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return root.Rename(part, to)
}
