package inside

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// device is a device node that is brought into the private /dev.
type device struct {
	tree tree
	name string
}

// devices lists those that every program may use.
func devices() []string {
	var names []string
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if unix.Access("/dev/"+name, unix.F_OK) == nil || name == "null" {
			names = append(names, name)
		}
	}
	return names
}

// mountDev builds a small /dev.
//
// Threat: a device of the host is a way out or in (another terminal of the
// same user, vsock, a disk or a tun device for root) -> only the harmless ones
// are there, and terminals are in an instance of their own. /dev/tty is whatever
// terminal a process inside has; see ownTerminal.
func (b *builder) mountDev() error {
	dev, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, [2]string{"mode", "755"}, [2]string{"size", "1m"})
	if err != nil {
		return err
	}
	if err := dev.attach("/dev"); err != nil {
		return err
	}
	for _, d := range b.devices {
		if err := mountPoint("/dev/"+d.name, false); err != nil {
			return err
		}
		if err := d.tree.attach("/dev/" + d.name); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx", "core": "/proc/kcore",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		name, fstype string
		attrs        int
		options      [][2]string
	}{
		{"pts", "devpts", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, [][2]string{{"ptmxmode", "0666"}, {"mode", "620"}}},
		{"mqueue", "mqueue", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, nil},
	} {
		if err := os.Mkdir("/dev/"+m.name, 0o755); err != nil {
			return err
		}
		t, err := newTree(m.fstype, m.attrs, m.options...)
		if err != nil {
			if m.fstype == "mqueue" && (errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EPERM)) {
				continue // a kernel without POSIX queues has none to share
			}
			return err
		}
		if err := t.attach("/dev/" + m.name); err != nil {
			return err
		}
	}
	if err := os.Mkdir("/dev/shm", 0o755); err != nil {
		return err
	}
	return b.mountRoom("/dev/shm", 0o1777)
}
