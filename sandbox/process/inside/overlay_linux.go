package inside

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// overlay mounts a file system over the working directory that shows what is there
// and keeps every change elsewhere. It comes first: whatever is cloned of the
// directory later is cloned with it.
//
// The directories are named by descriptors: no character of a path means anything
// in an option, and the list of mounts does not tell the program where they are.
func (b *builder) overlay() error {
	l := b.cfg.Plan.Layer
	if l.Over == "" {
		return nil
	}
	options := [][2]string{{"lowerdir", l.Over}, {"upperdir", l.Upper}, {"workdir", l.Work}}
	for i := range options {
		fd, err := unix.Open(options[i][1], unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", options[i][1], err)
		}
		defer unix.Close(fd)
		options[i][1] = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	var st unix.Statfs_t
	if err := unix.Statfs(l.Over, &st); err != nil {
		return fmt.Errorf("%s: %w", l.Over, err)
	}
	if st.Flags&unix.ST_NOEXEC != 0 {
		attrs |= unix.MOUNT_ATTR_NOEXEC
	}
	// The attribute names of a user's overlay, whoever mounts it: root in a container
	// may not set the others.
	if err := mayPassModes(true); err != nil {
		return err
	}
	t, err := newTree("overlay", attrs, append(options, [2]string{"userxattr", ""})...)
	if e := mayPassModes(false); e != nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("an overlay in a user namespace needs Linux 5.11, its module, and a disk for %s with extended attributes, which is not an overlay itself, as a container's is: %w", l.Upper, err)
	}
	return t.attach(l.Over)
}

// Capabilities, linux/capability.h.
const (
	capDACOverride = 1 << 1
	capsOfInit     = capDACOverride | 1<<8 | 1<<10 | 1<<12 | 1<<21 // what package spawn gives in a user namespace
)

// mayPassModes raises and lowers the capability to pass the modes of files, in this
// thread. overlayfs keeps those of its maker, and works in a directory of mode 0.
// An init with other capabilities than spawn's, root's without a user namespace, is
// left as it is.
//
// Threat: root starts the program as another user; an init that passes modes would
// show that user what lies behind other users' closed directories -> it passes them
// for the time of one system call, which makes the overlay.
func mayPassModes(yes bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if caps[0].Permitted != capsOfInit {
		return nil
	}
	caps[0].Effective = caps[0].Permitted
	if !yes {
		caps[0].Effective &^= capDACOverride
	}
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
