package inside

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// freshProc is where, below the scratch file system, the second /proc is mounted.
const freshProc = "proc"

// mountNested lets sandboxes that the program makes have a /proc of their own, as
// `bwrap --proc /proc` does. The kernel mounts one in another user namespace only if
// these mounts hold one of which nothing is covered (mount_too_revealing in
// fs/namespace.c), and mountProc covers parts of ours. So there is a second one, behind
// /dev/shm: it counts, and no path leads to it. Without Nested it does nothing.
//
// Threat: uid 0 without capabilities makes namespaces, mounts a fresh /proc and writes
// kernel settings in it: core_pattern, which runs programs outside, or, in a container,
// those of the captured network -> who is uid 0 inside, or may write such a setting,
// gets no second /proc, and the kernel refuses a fresh one. In a new /proc everybody
// else has the rights of any ordinary user, and sees the processes of the new namespace
// alone. Left over: /proc/keys there lists the kernel keys that the user may view, by
// their names.
func (b *builder) mountNested() error {
	if !b.cfg.Nested || b.scratch <= 0 {
		return nil
	}
	t, err := newTree("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(int(t))
	if !b.skips("rootproc") {
		err := unix.Faccessat(int(t), "sys/kernel/core_pattern", unix.W_OK, unix.AT_EACCESS)
		if os.Geteuid() == 0 || !errors.Is(err, unix.EACCES) {
			return nil
		}
	}
	if err := unix.Mkdirat(int(b.scratch), freshProc, 0o700); err != nil {
		return fmt.Errorf("mkdir %s: %w", freshProc, err)
	}
	if err := unix.MoveMount(int(t), "", int(b.scratch), freshProc, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount a second /proc: %w", err)
	}
	return nil
}
