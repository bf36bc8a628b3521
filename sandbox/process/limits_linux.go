package process

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/bounds"
	"egressd/internal/linux/kernelversion"
	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

// behindGroup is how many processes more than its control group pid 1 allows.
const behindGroup = 64

// groupFix is what to do where no control group can be made.
const groupFix = "start launch in a session of systemd that may have control groups below it: systemd-run --user --scope -p Delegate=yes launch ...; in a container, mount /sys/fs/cgroup writable; or leave the limit out"

// LimitsHere makes a control group, to find out how limits are kept here.
func LimitsHere() (k Keeps) {
	g, err := bounds.New(bounds.Limits{Pids: 1 << 20, Memory: 1 << 40, CPU: 1000})
	if err == nil {
		k.Groups = filepath.Dir(g.Dir())
		_, err = g.Close()
	}
	k.WhyNot, k.Pids = err, err == nil || countsPids(os.Geteuid() != 0)
	return k
}

// countsPids reports whether the kernel bounds processes without a control group: by
// the numbers of a process namespace (6.14), or by RLIMIT_NPROC, which does not bind
// the machine's uid 0. Before 5.14 that counts all processes of the user.
func countsPids(ordinary bool) bool {
	return kernelversion.AtLeast(6, 14) || ordinary && kernelversion.AtLeast(5, 14)
}

// newGroup makes the control group of one run; nil if its limits need none. Limits
// that cannot be kept are a *sandbox.CapabilityError.
func (b *Backend) newGroup(user *sandbox.Cred) (*bounds.Group, error) {
	l := b.Limits
	if l.Files > 0 {
		if err := enoughFiles(l.Files); err != nil {
			return nil, err
		}
	}
	ordinary := os.Geteuid() != 0 || user != nil && user.UID != 0
	switch {
	case l.Pids == 0 && !countsPids(ordinary):
		l.Pids = DefaultPids() // a group is all there is; without one launch doctor says so
	case l.Pids == 0 && l.Memory == 0 && l.CPU == 0:
		return nil, nil
	}
	g, err := bounds.New(bounds.Limits{Pids: int(l.Pids), Memory: l.Memory, CPU: int(l.CPU)})
	if err == nil {
		return g, nil
	}
	if l.Memory == 0 && l.CPU == 0 && (b.Limits.Pids == 0 || countsPids(ordinary)) {
		return nil, nil
	}
	asked := Limits{Pids: b.Limits.Pids, Memory: l.Memory, CPU: l.CPU}
	return nil, &sandbox.CapabilityError{
		Isolation: isolationNetns,
		What:      fmt.Sprintf("--limit %s needs a control group, and none can be made here: %v", asked, err), Fix: groupFix,
	}
}

// enoughFiles refuses a limit on descriptors that this process cannot give.
func enoughFiles(n int64) error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	if uint64(n) > r.Max { // #nosec G115 -- positive
		return &sandbox.CapabilityError{
			Isolation: isolationNetns,
			What:      fmt.Sprintf("--limit files=%d is above the limit of this process, which is %d", n, r.Max), Fix: "raise it outside first (ulimit -Hn, LimitNOFILE=), or ask for less",
		}
	}
	return nil
}

// ownLimits are those that pid 1 keeps. Before 5.14 the kernel counts processes
// outside as well where it counts by user, so that the default is a wide one there.
// Where a control group counts, its bound is to be met first, as it tells that it was.
func (s *supervisor) ownLimits() control.Limits {
	limits := s.b.Limits
	l := control.Limits{Processes: int(limits.Pids), Files: int(limits.Files), Disk: int(limits.Disk)}
	if s.group != nil && l.Processes > 0 {
		l.Processes += behindGroup
	}
	if l.Processes == 0 && !kernelversion.AtLeast(5, 14) {
		l.Processes = 4096
	}
	return l
}

// closeGroup removes the control group of the run, which is over, and notes what met
// its limits.
func (s *supervisor) closeGroup() {
	if s.group == nil {
		return
	}
	met, err := s.group.Close()
	s.res.Met = met
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.b.log().Warn("the control group of the run is left behind", slog.Any("err", err))
	}
}
