package vfs

import (
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openDirAt opens the directory name only to go on from it: permission to read
// it is not needed. A link gives ENOTDIR.
func openDirAt(fd int, name string) (int, error) {
	return openAt(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// chmodAt never follows a link. Before Linux 6.6 there is no call for that, and
// glibc's way is ours: the file is held, and named by its descriptor.
func chmodAt(fd int, name string, perm uint32) error {
	err := again(func() error { return unix.Fchmodat(fd, name, perm, unix.AT_SYMLINK_NOFOLLOW) })
	if err != unix.EOPNOTSUPP && err != unix.ENOSYS && err != unix.EPERM {
		return err
	}
	held, herr := openAt(fd, name, unix.O_PATH, 0)
	if herr != nil {
		return err
	}
	defer unix.Close(held)
	if a, aerr := fstat(held); aerr != nil || a.kind() == syscall.S_IFLNK {
		return err
	}
	return again(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(held), perm) })
}

// stamp is a time for utimensat; zero leaves what is there.
func stamp(t time.Time) unix.Timespec {
	if t.IsZero() {
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	return unix.Timespec(timespec(t))
}

// notKernel refuses file systems that are interfaces of the kernel.
//
// Threat: the workspace holds a mount of /proc, /sys or /dev, or is the root of
// the host: a write to /proc/self/mem would be code in the worker -> a walk
// does not step onto them. Disks, tmpfs and network file systems that are
// mounted in a workspace belong to it. Left over: kinds that a later kernel
// brings; Landlock and seccomp of the worker stand behind.
func notKernel(fd int) error {
	var s unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &s) }); err != nil {
		return err
	}
	// A magic number is 32 bits, signed on some platforms.
	if slices.Contains(kernelFS, uint32(s.Type)) {
		return syscall.EACCES
	}
	return nil
}

var kernelFS = []uint32{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC,
	unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC,
	unix.SMACK_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.NSFS_MAGIC,
	unix.BINFMTFS_MAGIC, unix.HUGETLBFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC,
	unix.SOCKFS_MAGIC, unix.ANON_INODE_FS_MAGIC, unix.DAXFS_MAGIC, unix.XENFS_SUPER_MAGIC,
	0x62656570, // configfs
	0x19800202, // mqueue
	0x65735543, // fusectl
	0x6e667364, // nfsd
	0x67596969, // rpc_pipefs
	0x1373,     // devfs
}
