package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"egressd/internal/cli"
	"egressd/sandbox"
	"egressd/sandbox/process"
)

// Values of --on-replaced.
const (
	onReplacedEnd      = "end"
	onReplacedContinue = "continue"
)

// outside is what holds for files of this machine in the process tier.
func (s *session) outside() (process.Outside, error) {
	hide, err := s.hideRecords()
	aside := ""
	if dir, err := s.recordsDir(); err == nil {
		aside = filepath.Join(dir, "refused", s.trail.Session)
	}
	return process.Outside{Hide: hide, Aside: aside, KeepOn: s.opts.Program.OnReplaced == onReplacedContinue, Replaced: s.replaced}, err
}

// replaced tells and records that a protected file was replaced.
func (s *session) replaced(r process.Replacement) {
	s.clearLine()
	what := "it stays out of the program's reach"
	switch {
	case r.Exposed && s.opts.Program.OnReplaced == onReplacedContinue:
		what = "the program can write it from now on"
	case r.Exposed:
		what = "the program could write it from then on, so it was ended (--on-replaced continue lets a run go on)"
	}
	if r.Exposed || !s.opts.Report.Quiet {
		s.Say("launch: %s was replaced on this machine during the run (sha256 before: %s, now: %s): %s\n",
			cli.Safe(r.Path), digestText(r.Was), digestText(r.Now), what)
	}
	err := s.trail.Replaced(r.Path, r.Was, r.Now, r.Exposed)
	if err != nil {
		s.Say("launch: that is not on record: %v\n", err)
	}
}

func digestText(d string) string {
	if d == "" {
		return "none"
	}
	return d
}

// hideRecords lists the directories of launch's own records, which the program must
// neither read nor plant, and makes the one of this run's environment.
//
// Threat: the record of a named sandbox holds the flags of its next run; a program
// that writes it, or makes it before there is one, widens that run -> see
// process.Outside. Left over: a HOME that does not exist, which only a program that
// may write its parent can make.
func (s *session) hideRecords() ([]string, error) {
	var dirs []string
	if dir, err := s.recordsDir(); err == nil {
		if err := makePrivate(dir, s.Getenv("HOME"), s.opts.Keeping.Name != ""); err != nil {
			return nil, fmt.Errorf("the directory for launch's records, which the program must not plant: %w\n"+
				"set HOME, or XDG_STATE_HOME, to a directory that this user can write", err)
		}
		dirs = append(dirs, dir)
	}
	if home := s.Getenv("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local", "state", recordsName))
	}
	var there []string
	for _, dir := range dirs {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && (len(there) == 0 || there[0] != dir) {
			there = append(there, dir)
		}
	}
	return there, nil
}

// makePrivate makes dir, 0700, and what is missing above it. New directories belong
// to whom the one above them belongs to: root may be at work for another user. own:
// dir itself belongs to this process's user all the same, who is about to use it.
// It is no error that home does not exist, or that this user may make nothing there.
func makePrivate(dir, home string, own bool) error {
	if _, err := os.Lstat(home); errors.Is(err, fs.ErrNotExist) && within(dir, home) {
		return nil
	}
	var missing []string
	above := dir
	var owner *syscall.Stat_t
	for {
		fi, err := os.Stat(above)
		if err == nil {
			owner, _ = fi.Sys().(*syscall.Stat_t)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || above == filepath.Dir(above) {
			return ignoreForeign(err, nil)
		}
		missing = append(missing, above)
		above = filepath.Dir(above)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		if err := os.Mkdir(missing[i], 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return ignoreForeign(err, owner)
		}
		if owner != nil && os.Geteuid() == 0 && (i > 0 || !own) {
			if err := os.Lchown(missing[i], int(owner.Uid), int(owner.Gid)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ignoreForeign drops an error about a directory that this user cannot change, and
// so neither can a program that runs as the same user.
func ignoreForeign(err error, owner *syscall.Stat_t) error {
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) && (owner == nil || int(owner.Uid) != os.Geteuid()) {
		return nil
	}
	return err
}

// within reports whether path lies below dir, an absolute directory.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// separate keeps the record and the program's output apart.
//
// Threat: the program prints lines that look like events into the stream that
// carries the events, or reads them away from it -> where the record is the standard
// output, the program's output goes to the standard error; where that, or the
// standard input, is the same stream, nothing runs. A terminal is shared: nobody
// takes what stands there for a record.
func (s *session) separate(spec *sandbox.Spec) error {
	if s.trail.Shares(spec.Stdout) && s.trail.IsStdout() {
		spec.Stdout = spec.Stderr
	}
	for _, f := range []struct {
		what string
		file *os.File
	}{{"standard input", spec.Stdin}, {"standard error", spec.Stderr}, {"standard output", spec.Stdout}} {
		if s.trail.Shares(f.file) {
			return fmt.Errorf("--events %s: it is the program's %s as well, where the program could forge lines: give --events a file of its own", s.opts.Report.Events, f.what)
		}
	}
	return nil
}
