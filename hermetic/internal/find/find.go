// Package find is find(1) of GNU findutils over the session's files.
package find

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/regex"
)

// Commands are the commands of this room.
func Commands() command.Table { return command.Table{"find": run} }

// search is one call of find.
type search struct {
	*gnu.Work
	follow   byte // 'P', 'H' or 'L'
	starts   []string
	min, max int // depths; max -1: any
	depth    bool
	oneFS    bool
	daystart bool
	syntax   regex.Syntax
	now      time.Time
	zone     *time.Location

	test    node
	acts    bool // an action was given
	batches []*batch
	files   map[string]io.WriteCloser
	quit    bool
}

func run(ctx context.Context, c *command.Call) int {
	s := &search{
		Work: gnu.Begin(ctx, c), follow: 'P', max: -1, syntax: regex.Emacs, now: c.Now(), zone: date.Zone(c.Getenv("TZ")),
		files: map[string]io.WriteCloser{},
	}
	s.find(c.Args[1:])
	for _, name := range slices.Sorted(mapKeys(s.files)) {
		if err := s.files[name].Close(); err != nil {
			s.Fault("%s: %s", gnu.Quote(name), command.Reason(err))
		}
	}
	return s.End()
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *search) find(args []string) {
	args, ok := s.leading(args)
	if !ok {
		return
	}
	p := &parser{search: s, args: args}
	test, err := p.parse()
	switch {
	case err == errHelp:
		fmt.Fprintf(s.Out, "Usage: find [-H] [-L] [-P] [-Olevel] [path...] [expression]\n")
		return
	case err == errVersion:
		fmt.Fprintf(s.Out, "find (egressd hermetic)\n")
		return
	case err != nil:
		s.Die(1, "%v", err)
		return
	}
	s.test = test
	if len(s.starts) == 0 {
		s.starts = []string{"."}
	}
	for _, start := range s.starts {
		if s.quit || s.Ctx.Err() != nil {
			break
		}
		s.start(start)
	}
	for _, b := range s.batches {
		b.flush()
	}
}

// leading takes -H, -L, -P and -O, and the places to start from.
func (s *search) leading(args []string) (rest []string, ok bool) {
options:
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "-H" || a == "-L" || a == "-P":
			s.follow = a[1]
		case strings.HasPrefix(a, "-O") && len(a) == 3 && a[2] >= '0' && a[2] <= '9':
		case a == "-D":
			s.Refuse("-D")
			return nil, false
		case a == "--":
			args = args[1:]
			break options
		default:
			break options
		}
		args = args[1:]
	}
	for len(args) > 0 && !expression(args[0], true) {
		s.starts = append(s.starts, args[0])
		args = args[1:]
	}
	return args, true
}

// expression says whether a word begins an expression and is no path.
func expression(a string, first bool) bool {
	switch {
	case a == "":
		return false
	case a[0] == '-':
		return len(a) > 1
	case a == ")" || a == ",":
		return !first
	}
	return a == "(" || a == "!"
}

// output opens the file of -fprint and its like, once for each name.
func (s *search) output(name string) (io.Writer, error) {
	if name == "/dev/stdout" {
		return s.Out, nil
	}
	if name == "/dev/stderr" {
		return s.Stderr, nil
	}
	if f := s.files[name]; f != nil {
		return f, nil
	}
	f, err := s.FS.OpenFile(s.Path(name), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666&^s.Umask)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", gnu.Quote(name), command.Reason(err))
	}
	s.files[name] = f
	return f, nil
}
