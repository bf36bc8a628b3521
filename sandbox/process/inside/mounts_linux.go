package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pickUp clones what the mounts of begin will hide.
func (b *builder) pickUp() error {
	for _, name := range devices() {
		t, err := cloneTree("/dev/"+name, false)
		if err != nil {
			return err
		}
		b.devices = append(b.devices, device{t, name})
	}
	b.cgroup = -1
	if t, err := cloneTree("/sys/fs/cgroup", true); err == nil {
		b.cgroup = t
	}
	return nil
}

// pickBinds clones what the private roots will hide.
func (b *builder) pickBinds() error {
	for _, bind := range b.cfg.Plan.Binds {
		t, err := cloneTree(bind.Source, bind.ReadOnly)
		if err != nil && !(bind.ReadOnly && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))) {
			return err
		}
		b.binds = append(b.binds, t)
	}
	if err := b.pickPlaces(); err != nil {
		return err
	}
	return b.pickShown()
}

// mountProc mounts a process file system of this process namespace.
//
// Threat: the host's /proc shows its processes (environments, memory, ways
// into their namespaces); a uid 0 without capabilities may still write kernel
// settings such as core_pattern, which run programs outside -> a fresh /proc,
// the settings in it read-only. Where the kernel refuses a fresh one (a
// container masks parts of its own) nothing is run.
func (b *builder) mountProc() error {
	t, err := newTree("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the kernel refuses a fresh /proc, most likely because this container masks parts of its own: %w", err)
	}
	if err != nil {
		return err
	}
	if err := t.attach("/proc"); err != nil {
		return err
	}
	if !b.skips("pids") {
		if err := b.limitProcesses(); err != nil {
			return err
		}
	}
	if b.skips("procsys") {
		return nil
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		if err := bindOver(path, path, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug"} {
		if err := bindOver("/dev/null", path, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// mountSys mounts the devices and settings of this network namespace, or
// keeps the host's where the kernel refuses that; read-only both ways.
func (b *builder) mountSys() error {
	if fi, err := os.Stat("/sys"); err != nil || !fi.IsDir() {
		return nil
	}
	const attrs = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY
	t, err := newTree("sysfs", attrs)
	if err != nil {
		return mountReadOnly("/sys")
	}
	if err := t.attach("/sys"); err != nil {
		return err
	}
	if b.cgroup >= 0 {
		// Run-times size themselves by the limits they read here.
		if err := b.cgroup.attach("/sys/fs/cgroup"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// scratchSize is what all private directories may hold together: a number of bytes,
// or half of the machine's memory, tmpfs(5).
func (b *builder) scratchSize() string {
	if n := b.cfg.Limits.Disk; n > 0 {
		return strconv.Itoa(n)
	}
	return "50%"
}

// mountRoom mounts a private directory on path: one of the one file system that
// is behind them all, of which nothing else is to be seen.
//
// Threat: a program fills private directories until the machine is out of
// memory, which a tmpfs of half the memory each would let it -> they share one
// bound. Left over: half of the memory, until the run ends, unless Limits says less.
func (b *builder) mountRoom(path string, mode uint32) error {
	if b.scratch <= 0 {
		base, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, [2]string{"mode", "700"}, [2]string{"size", b.scratchSize()})
		if err != nil {
			return err
		}
		// Only what is attached can be copied in part. The copy covers it at once.
		if err := base.place(path); err != nil {
			base.discard()
			return err
		}
		b.scratch = base
	}
	name := strconv.Itoa(b.rooms)
	b.rooms++
	if err := unix.Mkdirat(int(b.scratch), name, mode); err != nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	if err := unix.Fchmodat(int(b.scratch), name, mode, 0); err != nil { // whatever the umask is
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	room, err := unix.OpenTree(int(b.scratch), name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return &fs.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return tree(room).attach(path)
}

func (b *builder) mountPrivate() error {
	for _, r := range b.cfg.Plan.Roots {
		mode := uint32(0o1777)
		if strings.HasSuffix(r, "run") {
			mode = 0o755
		}
		if err := b.mountRoom(r, mode); err != nil {
			return err
		}
	}
	if d := b.cfg.TmpDir; below(d, b.cfg.Plan.Roots) {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if d := b.cfg.RuntimeDir; below(d, b.cfg.Plan.Roots) {
		if err := os.MkdirAll(filepath.Dir(d), 0o755); err != nil {
			return err
		}
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if below("/run/lock", b.cfg.Plan.Roots) {
		if err := os.Mkdir("/run/lock", 0o755); err != nil {
			return err
		}
		return os.Chmod("/run/lock", 0o777|os.ModeSticky)
	}
	return nil
}

// below reports whether path lies strictly below one of roots.
func below(path string, roots []string) bool {
	for _, r := range roots {
		if strings.HasPrefix(path, r+"/") {
			return true
		}
	}
	return false
}

// bringBack attaches the binds.
func (b *builder) bringBack() error {
	for i, bind := range b.cfg.Plan.Binds {
		if b.binds[i] < 0 {
			continue
		}
		if fi, err := os.Lstat(bind.Path); err == nil && fi.Mode()&os.ModeSymlink != 0 {
			b.binds[i].discard() // an outer bind brought the link, and what it leads to is a bind as well
			continue
		}
		if err := mountPoint(bind.Path, bind.Dir); err != nil {
			return err
		}
		if err := b.binds[i].attach(bind.Path); err != nil {
			return err
		}
	}
	return nil
}
