package bounds

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Implementation constants.
const (
	prefix     = "launch-" // of the names of groups: launch-PID.RANDOM
	maxParents = 32        // groups that are tried, from this process's own upwards
	maxSwept   = 256       // entries of a parent that are looked at
	period     = 100_000   // microseconds in which CPU time is handed out, cpu.max
	closeLimit = 5 * time.Second
	pollLimit  = 20 * time.Millisecond // looks again after that, whatever is told
)

// Group is a control group that this process made. Not safe for concurrent use.
type Group struct {
	dir    string
	limits Limits
}

// controllers are what l needs.
func (l Limits) controllers() (need []string) {
	for _, c := range []struct {
		name string
		set  bool
	}{{"cpu", l.CPU > 0}, {"memory", l.Memory > 0}, {"pids", l.Pids > 0}} {
		if c.set {
			need = append(need, c.name)
		}
	}
	return need
}

// New makes a group with limits l, beside this process's own group or below one of
// its parents: a group that has processes itself can have none below it with
// limits. The caller closes it. The error says what is missing.
func New(l Limits) (*Group, error) {
	mount, own, err := self()
	if err != nil {
		return nil, err
	}
	return newBelow(mount, own, l)
}

// newBelow makes a group in the first directory from own up to mount that has what l
// needs.
func newBelow(mount, own string, l Limits) (*Group, error) {
	need := l.controllers()
	var why error
	for dir, i := own, 0; i < maxParents; dir, i = filepath.Dir(dir), i+1 {
		err := prepare(dir, need)
		if err == nil {
			var g *Group
			if g, err = create(dir, l); err == nil {
				return g, nil
			}
		}
		why = err // of the outermost: nearer ones are busy or closed for the same reason
		if dir == mount || dir == "/" || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			break
		}
	}
	return nil, why
}

// self reports where control groups (version 2) are mounted, and this process's.
func self() (mount, own string, err error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	path := ""
	for line := range strings.Lines(string(groups)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(rest, "\n")
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(mounts)) {
		// ID, parent, major:minor, root, mount point, options ... - type, source, options
		before, after, ok := strings.Cut(line, " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(f[3], path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") {
			continue
		}
		return f[4], filepath.Join(f[4], below), nil
	}
	return "", "", errors.New("no control groups of version 2 are mounted, or this process's is not among them")
}

// prepare makes sure that groups below dir can have limits of these kinds.
func prepare(dir string, need []string) error {
	for _, name := range []string{dir, filepath.Join(dir, "cgroup.procs")} {
		if err := unix.Access(name, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
	}
	if busy, err := holdsProcesses(dir); busy || err != nil {
		return errors.Join(err, fmt.Errorf("%s: there are processes in it, so groups below it cannot have limits", dir))
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	enabled, err := words(control)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(need), func(c string) bool { return slices.Contains(enabled, c) })
	if len(missing) == 0 {
		return nil
	}
	available, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range missing {
		if !slices.Contains(available, c) {
			return fmt.Errorf("%s: the controller %s is not there (it has: %s)", dir, c, strings.Join(available, " "))
		}
		if err := os.WriteFile(control, []byte("+"+c), 0); err != nil {
			return fmt.Errorf("the controller %s cannot be enabled: %w", c, err)
		}
	}
	return nil
}

// holdsProcesses reports whether dir has processes of its own. The root may. Another
// group that has some can enable pids and cpu all the same, and takes no process below
// it from then on (cgroups(7), thread mode).
func holdsProcesses(dir string) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return false, nil // the root
	}
	f, err := os.Open(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return false, err
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n > 0, err
}

func words(name string) ([]string, error) {
	data, err := os.ReadFile(name)
	return strings.Fields(string(data)), err
}

// create makes the group.
func create(parent string, l Limits) (*Group, error) {
	sweep(parent)
	g := &Group{dir: filepath.Join(parent, prefix+strconv.Itoa(os.Getpid())+"."+rand.Text()[:8]), limits: l}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, err
	}
	if err := g.set(); err != nil {
		return nil, errors.Join(err, unix.Rmdir(g.dir))
	}
	return g, nil
}

func (g *Group) set() error {
	if l := g.limits.Pids; l > 0 {
		if err := g.write("pids.max", strconv.Itoa(l)); err != nil {
			return err
		}
	}
	if l := g.limits.Memory; l > 0 {
		if err := g.write("memory.max", strconv.FormatInt(l, 10)); err != nil {
			return err
		}
		// A kernel without accounting for swap has no such file, and no swap to give.
		if err := g.write("memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if l := g.limits.CPU; l > 0 {
		return g.write("cpu.max", fmt.Sprint(l*(period/1000), " ", period))
	}
	return nil
}

// write writes a setting. It must exist: a file made by mistake would bound nothing.
func (g *Group) write(name, text string) error {
	f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Add moves process pid into the group. What it starts afterwards is in there, too.
func (g *Group) Add(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

// Dir is where the group is.
func (g *Group) Dir() string { return g.dir }

// Close kills what is left in the group and removes it. met lists the limits that
// something ran into: "pids", for which a fork failed, and "memory", for which a
// process was killed.
func (g *Group) Close() (met []string, err error) {
	if g.limits.Memory > 0 && g.count("memory.events", "oom_kill") > 0 {
		met = append(met, "memory")
	}
	if g.limits.Pids > 0 && g.count("pids.events", "max") > 0 {
		met = append(met, "pids")
	}
	if err := g.write("cgroup.kill", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) { // Linux 5.14
		return met, err
	}
	if err := errors.Join(g.waitEmpty(), unix.Rmdir(g.dir)); err != nil {
		return met, fmt.Errorf("%s: %w", g.dir, err)
	}
	return met, nil
}

// waitEmpty waits until the kernel says that nothing is in the group any more: what
// was killed leaves it a moment later.
func (g *Group) waitEmpty() error {
	f, err := os.Open(filepath.Join(g.dir, "cgroup.events"))
	if err != nil {
		return err
	}
	defer f.Close()
	for end := time.Now().Add(closeLimit); g.count("cgroup.events", "populated") > 0; {
		left := time.Until(end)
		if left <= 0 {
			return errors.New("a process that was killed is still there")
		}
		// Each change is told (POLLPRI) once more than it is read.
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}} // #nosec G115 -- a descriptor
		if _, err := unix.Poll(fds, int(min(left, pollLimit).Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return nil
}

// Discard removes a group that nothing was in. A nil Group is none.
func (g *Group) Discard() error {
	if g == nil {
		return nil
	}
	return unix.Rmdir(g.dir)
}

// count reads a number of a file of events.
func (g *Group) count(name, key string) int64 {
	data, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if f := strings.Fields(string(line)); len(f) == 2 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// sweep removes the groups of launchers that were killed: they are empty, since what
// was in them died with the launcher. A group of a launcher that lives is left alone.
func sweep(parent string) {
	d, err := os.Open(parent)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxSwept)
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, prefix)
		text, _, dot := strings.Cut(rest, ".")
		pid, err := strconv.Atoi(text)
		if !ok || !dot || err != nil || pid <= 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		_ = unix.Rmdir(filepath.Join(parent, name)) // refused while something is in it
	}
}
