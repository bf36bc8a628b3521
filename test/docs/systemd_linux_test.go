//go:build system

package docs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// systemdWorld is a world whose first process is the real systemd, with a
// journal of its own, and with no units but those that a page installs.
const (
	systemdWorld  = "systemd"
	systemdBinary = "/lib/systemd/systemd"
	bootTimeout   = time.Minute
)

// units are those of the distribution's that the world has. Everything else, such as
// what cleans directories at a start, is none of its business.
var units = []string{
	"basic.target", "sysinit.target", "sockets.target", "multi-user.target", "network.target", "network-online.target",
	"local-fs.target", "paths.target", "timers.target", "slices.target", "shutdown.target", "umount.target", "final.target",
	"systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket", "systemd-journald-audit.socket",
}

const unitDir = "/run/docs-units"

// bootSystemd turns the calling process, the first of its namespace, into
// systemd.
func bootSystemd() error {
	if err := ownCgroups(); err != nil {
		return err
	}
	if err := unix.Mount("world", "/etc/systemd/system", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if err := os.Mkdir(unitDir, 0o755); err != nil {
		return err
	}
	for _, u := range units {
		if err := os.Symlink("/lib/systemd/system/"+u, filepath.Join(unitDir, u)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/machine-id":        "0123456789abcdef0123456789abcdef\n",
		unitDir + "/docs.target": "[Unit]\nDescription=A machine to try things on\nWants=systemd-journald.service\nAfter=systemd-journald.service\n",
	} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 4 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return unix.Exec(systemdBinary, []string{systemdBinary, "--system", "--unit=docs.target", "--show-status=no", "--log-target=journal"},
		[]string{
			"container=docs", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
			"SYSTEMD_UNIT_PATH=/etc/systemd/system:/run/systemd/system:" + unitDir, "SYSTEMD_GENERATOR_PATH=" + unitDir + "/generators",
		})
}

// cgroupName is the world's part of every cgroup hierarchy.
func cgroupName(pid int) string { return "egressd-docs-" + strconv.Itoa(pid) }

// cgroupRoots lists where hierarchies are mounted.
func cgroupRoots() []string {
	const top = "/sys/fs/cgroup"
	if _, err := os.Stat(top + "/cgroup.procs"); err == nil {
		return []string{top}
	}
	dirs, _ := filepath.Glob(top + "/*/cgroup.procs") // the pattern is well-formed
	for i, d := range dirs {
		dirs[i] = filepath.Dir(d)
	}
	return dirs
}

// ownCgroups moves this process into cgroups of its own and hides all others.
func ownCgroups() error {
	name := cgroupName(hostPID())
	for _, root := range cgroupRoots() {
		sub := filepath.Join(root, name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			return err
		}
		if strings.HasSuffix(root, "cpuset") {
			continue // its groups start without a processor
		}
		if err := os.WriteFile(filepath.Join(sub, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	for _, root := range cgroupRoots() {
		if err := unix.Mount(filepath.Join(root, name), root, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", root, err)
		}
	}
	return nil
}

// hostPID is this process's number outside of its own namespace, as its parent
// said.
func hostPID() int {
	n, _ := strconv.Atoi(os.Getenv("EGRESSD_DOCS_WORLD")) // set by runWorld
	return n
}

// dropCgroups removes what ownCgroups made, once its processes are gone.
func dropCgroups(world int) {
	for _, root := range cgroupRoots() {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(root, cgroupName(world)), func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			for end := time.Now().Add(2 * time.Second); syscall.Rmdir(dirs[i]) == syscall.EBUSY && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond) // polling: the kernel tells nobody when the last process is gone
			}
		}
	}
}

// enterSystemd waits until the systemd that is process pid has started, and
// prepares a shell beside it.
func enterSystemd(pid int, dir, work string) (*exec.Cmd, error) {
	enter := []string{"nsenter", "-t", strconv.Itoa(pid), "-m", "-p", "-C"}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(bootTimeout); ; <-tick.C {
		out, err := exec.Command(enter[0], append(enter[1:], "systemctl", "is-active", "docs.target", "systemd-journald.service")...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("systemd does not start: %s", out)
		}
	}
	cmd := exec.Command(enter[0], append(enter[1:], "sh", "-c", `cd "$1" && exec bash --norc --noprofile`, "sh", work)...)
	cmd.Env = shellEnviron(dir)
	return cmd, nil
}
