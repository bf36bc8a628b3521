package inside

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
)

// kernelFiles are the magic numbers (linux/magic.h) of file systems that stand
// for the machine: its processes, settings, devices and groups.
var kernelFiles = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true,
	unix.SECURITYFS_MAGIC: true, unix.BPF_FS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEVPTS_SUPER_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.BINFMTFS_MAGIC: true,
	unix.SELINUX_MAGIC: true, unix.SMACK_MAGIC: true, unix.NSFS_MAGIC: true,
	0x19800202: true, // mqueue
	0x62656570: true, // configfs
}

// forbidDevices makes device nodes outside /dev useless: those of a devtmpfs
// that is mounted a second time, of a change root, of a container's image.
func forbidDevices() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
	return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr)
}

// listMounts reads where the host's file systems are mounted, before ours are
// added to the list: each line takes the kernel a while to write.
func (b *builder) listMounts() (err error) {
	b.mounts, err = mountinfo.Read()
	return err
}

// coverElsewhere hides what /proc, /sys and /dev are made of where it is
// mounted a second time.
//
// Threat: the host's /proc or /sys, bound into a change root or passed into
// this container under another name, shows the host's processes and takes
// settings such as core_pattern from a uid 0 without capabilities -> each such
// mount is covered by an empty file system. Left over: nothing that can be
// reached by a path.
func (b *builder) coverElsewhere() error {
	for _, m := range b.mounts {
		if mountinfo.Within(m.Point, "/proc") || mountinfo.Within(m.Point, "/sys") || mountinfo.Within(m.Point, "/dev") {
			continue // ours by now
		}
		var st unix.Statfs_t
		if unix.Statfs(m.Point, &st) != nil || !kernelFiles[int64(st.Type)] {
			continue // another kind, behind a private root, or out of reach
		}
		if err := cover(m.Point); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// cover hides what is at path.
func cover(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return bindOver("/dev/null", path, true)
	}
	t, err := newTree("tmpfs", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, [2]string{"mode", "755"})
	if err != nil {
		return err
	}
	return t.attach(path)
}
