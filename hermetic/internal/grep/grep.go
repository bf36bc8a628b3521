// Package grep is grep, egrep, fgrep, zgrep and rg: lines that match.
package grep

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{
		"grep":  func(ctx context.Context, c *command.Call) int { return run(ctx, c, basic) },
		"egrep": func(ctx context.Context, c *command.Call) int { return run(ctx, c, extended) },
		"fgrep": func(ctx context.Context, c *command.Call) int { return run(ctx, c, fixed) },
		"zgrep": func(ctx context.Context, c *command.Call) int { return run(ctx, c, zipped) },
		"rg":    ripgrep,
	}
}

// The statuses of grep: nothing was found, and something went wrong.
const (
	statusNone  = 1
	statusError = 2
)

// search is one run: what to look for, how to print it, and what came of it.
type search struct {
	ctx context.Context
	c   *command.Call
	o   options
	m   *matcher
	out *printer

	found  bool
	failed bool
	stop   error // ends the run: the context, a limit, or a failed write
}

func run(ctx context.Context, c *command.Call, flavour flavour) int {
	o, status := parse(c, flavour)
	if o == nil {
		return status
	}
	s := &search{ctx: ctx, c: c, o: *o, out: newPrinter(c.Stdout)}
	var err error
	if s.m, err = newMatcher(c, &s.o); err != nil {
		c.Errorf("%v", err)
		return statusError
	}
	for _, w := range s.m.warnings {
		c.Errorf("warning: %s", w)
	}
	if s.o.max == 0 {
		return statusNone
	}
	s.all()
	return s.status()
}

// all searches every operand.
func (s *search) all() {
	operands := s.o.operands
	if len(operands) == 0 {
		operands = []string{"-"}
		if s.o.recurse {
			operands = []string{"."}
			s.o.omitDot = true
		}
	}
	for _, name := range operands {
		if s.done() {
			return
		}
		s.operand(name)
	}
}

// done reports whether nothing more is to be read.
func (s *search) done() bool {
	if s.stop == nil {
		s.stop = s.ctx.Err()
	}
	return s.stop != nil || s.o.quiet && s.found
}

func (s *search) status() int {
	if err := s.out.flush(); err != nil && s.stop == nil {
		s.stop = err
	}
	switch {
	case s.stop != nil && brokenPipe(s.stop):
		return 141
	case s.stop != nil && s.ctx.Err() == nil:
		s.c.Errorf("%v", s.stop)
		return statusError
	case s.failed && !(s.o.quiet && s.found):
		return statusError
	case s.found:
		return 0
	}
	return statusNone
}

func brokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// complain reports a file that cannot be read. What was found before is
// printed before.
func (s *search) complain(name string, err error) {
	s.failed = true
	if s.o.silent {
		return
	}
	s.note("%s: %s", name, command.Reason(err))
}

func (s *search) note(format string, args ...any) {
	if err := s.out.flush(); err != nil && s.stop == nil {
		s.stop = err
	}
	s.c.Errorf(format, args...)
}

// operand searches one name of the command line.
func (s *search) operand(name string) {
	if name == "-" {
		s.reader(s.c.Stdin, s.o.label)
		return
	}
	info, err := s.c.FS.Stat(s.c.Path(name))
	if err != nil {
		s.complain(name, err)
		return
	}
	switch {
	case info.IsDir():
		s.directory(name)
	case s.o.skipped(name, false, true), s.device(info, true):
	default:
		s.file(name, name)
	}
}

// device reports whether a file is a device that is to be left out.
func (s *search) device(info fs.FileInfo, operand bool) bool {
	special := info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0
	return special && (s.o.devices == "skip" || s.o.devices == "" && s.o.recurse && !operand)
}

func (s *search) directory(name string) {
	switch {
	case s.o.recurse:
		if !s.o.skipped(name, true, true) {
			was := s.o.named
			s.o.named = s.o.named || !s.o.unnamed
			s.walk(name, 0)
			s.o.named = was
		}
	case s.o.directories == "skip" || s.o.skipped(name, true, true):
	default:
		s.failed = true
		if !s.o.silent {
			s.note("%s: Is a directory", name)
		}
		s.summary(&scan{search: s, name: name}, name)
	}
}

// maxDirectories is how deep directories may nest before grep gives up.
const maxDirectories = 1000

// walk searches what is below a directory, by name.
func (s *search) walk(dir string, depth int) {
	entries, err := s.c.FS.ReadDir(s.c.Path(dir))
	if err != nil {
		s.complain(s.shown(dir), err)
		return
	}
	if depth > maxDirectories {
		s.complain(s.shown(dir), syscall.ENAMETOOLONG)
		return
	}
	for _, e := range entries {
		if s.done() {
			return
		}
		s.entry(strings.TrimRight(dir, "/")+"/"+e.Name(), depth)
	}
}

// entry searches one file or directory below an operand.
func (s *search) entry(name string, depth int) {
	stat := s.c.FS.Lstat
	if s.o.follow {
		stat = s.c.FS.Stat
	}
	info, err := stat(s.c.Path(name))
	switch {
	case err != nil:
		s.complain(s.shown(name), err)
	case info.IsDir():
		if s.o.skipped(name, true, false) {
			return
		}
		if s.o.follow && s.loops(name) {
			s.note("warning: %s: recursive directory loop", s.shown(name))
			return
		}
		s.walk(name, depth+1)
	case info.Mode()&fs.ModeSymlink != 0, s.o.skipped(name, false, false), s.device(info, false):
	default:
		s.file(name, s.shown(name))
	}
}

// loops reports whether a directory, links followed, is one of those that it
// is in.
func (s *search) loops(name string) bool {
	real, err := s.c.FS.Resolve(s.c.Path(name))
	if err != nil {
		return false
	}
	for {
		at := strings.LastIndexByte(name, '/')
		if at <= 0 {
			return false
		}
		name = name[:at]
		if above, err := s.c.FS.Resolve(s.c.Path(name)); err == nil && above == real {
			return true
		}
	}
}

// shown is how a name below "." is printed when nobody wrote the dot.
func (s *search) shown(name string) string {
	if s.o.omitDot {
		return strings.TrimPrefix(name, "./")
	}
	return name
}

// file searches one file; shown is its name in the output.
func (s *search) file(name, shown string) {
	f, err := s.c.FS.Open(s.c.Path(name))
	if err != nil {
		s.complain(shown, err)
		return
	}
	defer f.Close()
	s.reader(f, shown)
}

// reader searches one stream and prints what is printed for a whole file.
func (s *search) reader(r io.Reader, name string) {
	in := r
	if s.o.unzip {
		var err error
		if in, err = unzip(r); err != nil {
			s.complain(name, err)
			return
		}
	}
	one := scan{search: s, name: name}
	if err := one.run(in); err != nil {
		var bad *readError
		if !errors.As(err, &bad) {
			s.stop = err
			return
		}
		s.complain(name, bad.err)
	}
	s.summary(&one, name)
}

// summary prints what -c, -l and -L do, and what is said of a binary file.
func (s *search) summary(one *scan, name string) {
	matched := one.count > 0
	s.found = s.found || matched
	if s.o.quiet {
		return
	}
	if s.o.count && s.o.list == 0 && (matched || !s.o.dropZero) {
		s.out.name(&s.o, name, ':')
		s.out.text(fmt.Sprintf("%d\n", one.count))
	}
	if s.o.list != 0 && matched == (s.o.list == 'l') {
		s.out.listed(&s.o, name)
	}
	if one.hidden && !s.o.count && s.o.list == 0 && s.o.binary == "binary" {
		s.note("%s: binary file matches", name)
	}
	if s.o.lineBuffered {
		s.stop = s.out.flush()
	}
}

// readError is an error of the file, not of the run.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// unzip reads what gzip or bzip2 made, or else the text as it is.
func unzip(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, _ := b.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(b)
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(b), nil
	}
	return b, nil
}
