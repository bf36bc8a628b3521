package hermetic

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/landlock"
	"egressd/internal/linux/mountinfo"
	"egressd/internal/linux/seccomp"
	"egressd/sandbox"
)

// Supports reports nil when this tier can run spec, else a
// *sandbox.CapabilityError: spec is no script, or the kernel lacks a wall. It
// starts nothing.
func (b *Backend) Supports(spec sandbox.Spec) error {
	if _, err := invoked(spec); err != nil {
		return err
	}
	return Walls()
}

// Walls reports a *sandbox.CapabilityError when the kernel lacks what confines a
// worker.
func Walls() error {
	const fix = "use a kernel of Linux 5.13 or later that has them, or the process tier (without --tier)"
	if landlock.ABI() < 1 {
		return &sandbox.CapabilityError{Isolation: isolation, What: "this kernel has no Landlock, or it is not among the active security modules (lsm=), or a container forbids it", Fix: fix}
	}
	if err := seccomp.WorkerSupported(); err != nil {
		return &sandbox.CapabilityError{Isolation: isolation, What: "system calls can't be filtered: " + err.Error(), Fix: fix}
	}
	return nil
}

// kernelFiles are the magic numbers (linux/magic.h) of file systems that stand
// for the machine and whose files look regular.
var kernelFiles = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true,
	unix.SECURITYFS_MAGIC: true, unix.BPF_FS_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true, unix.CGROUP2_SUPER_MAGIC: true,
	unix.DEVPTS_SUPER_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.BINFMTFS_MAGIC: true,
	unix.SELINUX_MAGIC: true, unix.SMACK_MAGIC: true, unix.NSFS_MAGIC: true,
}

// mounted refuses a workspace in which the kernel's own files are mounted, as in
// the directory of a container or a change root.
func (w workspace) mounted() error {
	mounts, err := mountinfo.Read()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if !mountinfo.Within(m.Point, w.root) {
			continue
		}
		var st unix.Statfs_t
		if unix.Statfs(m.Point, &st) == nil && kernelFiles[int64(st.Type)] {
			return &sandbox.CapabilityError{
				Isolation: isolation,
				What:      "the kernel's own files are mounted in the workspace, at " + filepath.Clean(m.Point),
				Fix:       "start in a directory without them, or name one with --workdir",
			}
		}
	}
	return nil
}
