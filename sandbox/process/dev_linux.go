package process

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// device is a device node brought into the private /dev.
type device struct {
	path string
	t    tree
}

// planDevices picks up the devices that every program may use, and the
// terminal that the launcher was given.
func (in *initProcess) planDevices() ([]device, error) {
	var devices []device
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		t, err := cloneTree("/dev/"+name, false)
		if errors.Is(err, fs.ErrNotExist) && name != "null" {
			continue
		}
		if err != nil {
			return nil, err
		}
		devices = append(devices, device{"/dev/" + name, t})
	}
	if in.cfg.Terminal != "" {
		t, err := cloneTree(in.cfg.Terminal, false)
		if err != nil {
			return nil, err
		}
		devices = append(devices, device{"/dev/console", t})
	}
	return devices, nil
}

// mountDev builds a small /dev.
//
// Threat: a device of the host is a way out or in (another terminal of the
// same user, vsock, a disk or a tun device for root) -> only the harmless ones
// are there, terminals made inside are in an instance of their own, and the
// launcher's terminal is /dev/console.
func (in *initProcess) mountDev(p *plan) error {
	dev, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, [2]string{"mode", "755"}, [2]string{"size", "1m"})
	if err != nil {
		return err
	}
	if err := dev.attach("/dev"); err != nil {
		return err
	}
	for _, d := range p.devices {
		if err := mountPoint(d.path, false); err != nil {
			return err
		}
		if err := d.t.attach(d.path); err != nil {
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
		{"shm", "tmpfs", unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, [][2]string{{"mode", "1777"}, {"size", "50%"}}},
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
	return nil
}
