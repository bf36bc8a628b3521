package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mountWalls builds the file-system walls. Order matters: everything that is
// brought back is picked up before anything is hidden.
func (in *initProcess) mountWalls() error {
	if err := makePrivate(); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	p, err := in.pickUp()
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func(*picked) error
	}{
		{"devices", in.forbidDevices},
		{"proc", in.mountProc},
		{"sys", in.mountSys},
		{"dev", in.mountDev},
		{"private", in.mountPrivate},
		{"binds", in.bringBack},
		{"names", in.mountNames},
		{"elsewhere", in.coverElsewhere},
		{"protect", in.protect},
		{"sockets", in.maskSockets},
	}
	for _, s := range steps {
		if in.skips(s.name) {
			continue
		}
		if err := s.do(p); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// picked is what was picked up before the first mount hides it.
type picked struct {
	binds   []tree // one for each of the plan's; -1: it is gone
	devices []tree
	cgroup  tree // -1: none
}

func (in *initProcess) pickUp() (*picked, error) {
	p := &picked{cgroup: -1}
	for _, b := range in.cfg.Plan.Binds {
		t, err := cloneTree(b.Source, b.ReadOnly)
		if err != nil && !(b.ReadOnly && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))) {
			return nil, err
		}
		p.binds = append(p.binds, t)
	}
	for _, d := range in.cfg.Plan.Devices {
		t, err := cloneTree(d.Source, false)
		if err != nil {
			return nil, err
		}
		p.devices = append(p.devices, t)
	}
	if t, err := cloneTree("/sys/fs/cgroup", true); err == nil {
		p.cgroup = t
	}
	return p, nil
}

// mountProc mounts a process file system of this process namespace.
//
// Threat: the host's /proc shows its processes (environments, memory, ways
// into their namespaces); a uid 0 without capabilities may still write kernel
// settings such as core_pattern, which run programs outside -> a fresh /proc,
// the settings in it read-only. Where the kernel refuses a fresh one (a
// container masks parts of its own) nothing is run.
func (in *initProcess) mountProc(*picked) error {
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
	if !in.skips("pids") {
		if err := in.limitProcesses(); err != nil {
			return err
		}
	}
	if in.skips("procsys") {
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
func (in *initProcess) mountSys(p *picked) error {
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
	if p.cgroup >= 0 {
		// Run-times size themselves by the limits they read here.
		if err := p.cgroup.attach("/sys/fs/cgroup"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (in *initProcess) mountPrivate(*picked) error {
	for _, r := range in.cfg.Plan.Roots {
		mode, size := "1777", "50%"
		if strings.HasSuffix(r, "run") {
			mode, size = "755", "10%"
		}
		t, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, [2]string{"mode", mode}, [2]string{"size", size})
		if err != nil {
			return err
		}
		if err := t.attach(r); err != nil {
			return err
		}
	}
	if d := in.cfg.TmpDir; below(d, in.cfg.Plan.Roots) {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if d := in.cfg.RuntimeDir; below(d, in.cfg.Plan.Roots) {
		if err := os.MkdirAll(filepath.Dir(d), 0o755); err != nil {
			return err
		}
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if below("/run/lock", in.cfg.Plan.Roots) {
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
func (in *initProcess) bringBack(p *picked) error {
	for i, b := range in.cfg.Plan.Binds {
		if p.binds[i] < 0 {
			continue
		}
		if fi, err := os.Lstat(b.Path); err == nil && fi.Mode()&os.ModeSymlink != 0 {
			p.binds[i].discard() // an outer bind brought the link, and what it leads to is a bind as well
			continue
		}
		if err := mountPoint(b.Path, b.Dir); err != nil {
			return err
		}
		if err := p.binds[i].attach(b.Path); err != nil {
			return err
		}
	}
	return nil
}
