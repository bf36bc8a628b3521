package run

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"egressd/internal/cli"
	"egressd/internal/run/summary"
	"egressd/sandbox/hermetic"
	"egressd/sandbox/vercel"
)

// Bounds of what is listed on the terminal. The events have all of it.
const (
	maxReturned = 10 // of each kind
	maxKeptOut  = 20
)

// style is how the summary looks on the standard error.
func (s *session) style() summary.Style {
	var look summary.Style
	width, _, err := 0, 0, error(nil)
	if s.Stderr != nil {
		width, _, err = term.GetSize(int(s.Stderr.Fd()))
	}
	if err == nil {
		look.Width = width // else it is no terminal
	}
	for _, f := range s.found {
		look.Found = append(look.Found, f.Path+" ("+string(f.State)+")")
	}
	look.JSON = s.opts.Report.JSON
	look.Paint = s.Paint(s.opts.Report.Color, look.Width > 0)
	return look
}

// note prints a line about the run that a person should read now.
func (s *session) note(text string) {
	s.clearLine()
	if !s.opts.Report.Quiet {
		s.Say("launch: %s\n", text)
	}
}

// returned says what a run brought back into the workspace, and what it could not.
func (s *session) returned(c vercel.Changes) {
	s.clearLine()
	var all []string
	for _, part := range []struct {
		mark  string
		names []string
	}{{"A", c.Added}, {"M", c.Changed}, {"D", c.Deleted}} {
		for _, name := range part.names {
			all = append(all, part.mark+" "+printable(name))
		}
	}
	if n := len(all); n > 0 && !s.opts.Report.Quiet {
		s.Say("launch: %s came back: %s\n", changes(n), list(all, n, maxReturned))
	}
	for i, p := range c.Conflicts {
		if i == maxReturned {
			s.Say("launch: and %d more conflicts\n", len(c.Conflicts)-i)
			break
		}
		s.Say("launch: conflict: %s: %s; the file here stays\n", printable(p.Path), p.Why)
	}
	if c.Aside != "" {
		s.Say("launch: what came back for them is in %s\n", c.Aside)
	}
	for i, p := range c.Refused {
		if i == maxReturned {
			s.Say("launch: and %d more refused\n", len(c.Refused)-i)
			break
		}
		s.Say("launch: refused: %s: %s\n", printable(p.Path), p.Why)
	}
}

// used says what the machine of a hosted run has used, and what nobody can say.
func (s *session) used(l vercel.Left) {
	if !l.Ran || s.opts.Report.Quiet || s.opts.Report.NoSummary {
		return
	}
	s.clearLine()
	if l.Time > 0 {
		size := ""
		if l.VCPUs > 0 {
			size = fmt.Sprintf(" of a machine with %d vCPUs", l.VCPUs)
		}
		s.Say("launch: used at Vercel: %v of processor time in %v%s; %s came in, %s went out\n",
			l.CPU.Round(10*time.Millisecond), l.Time.Round(10*time.Millisecond), size, amount(l.In), amount(l.Out))
	}
	known := ""
	if s.opts.MicroVM.Gate != "" {
		known = "; what egressd in the sandbox was asked is in the summary and the events"
	}
	s.Say("launch: what Vercel denied is not known here: it does not report it%s\n", known)
}

// amount spells a number of bytes.
func amount(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// keptOut says what --overlay kept out of the workspace. all may be a part of total
// changes.
func (s *session) keptOut(all []hermetic.Change, total int) {
	switch {
	case s.opts.Report.Quiet:
	case total == 0:
		s.Say("launch: no changes; the workspace is as it was\n")
	default:
		var names []string
		for _, c := range all {
			names = append(names, string(c.Kind)+" "+cli.Safe(c.Path))
		}
		s.Say("launch: %s kept out of the workspace: %s\n", changes(total), list(names, total, maxKeptOut))
	}
}

// lines is a writer to f whose lines begin at the left on a terminal that a program
// has set so that they would not.
func lines(f *os.File) io.Writer {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return returning{f}
}

// returning writes a carriage return before each line feed.
type returning struct{ w io.Writer }

func (r returning) Write(b []byte) (int, error) {
	if _, err := r.w.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// changes counts changes.
func changes(n int) string {
	if n == 1 {
		return "1 change"
	}
	return strconv.Itoa(n) + " changes"
}

// list spells the first names of total, at most so many.
func list(names []string, total, most int) string {
	names = names[:min(len(names), most)]
	text := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// printable spells a file name so that a terminal may show it.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// progressInterval is how often progress is printed.
const progressInterval = 200 * time.Millisecond

// progress shows on a terminal, in one line, how far a stage is.
func (s *session) progress() func(stage string, files int, bytes int64, of int) {
	var last time.Time
	var stage string
	return func(now string, files int, bytes int64, of int) {
		if now == "" {
			s.clearLine()
			return
		}
		if now == stage && time.Since(last) < progressInterval {
			return
		}
		stage, last = now, time.Now()
		count := ""
		if of > 0 {
			count = fmt.Sprintf("%d of %d files, ", files, of)
		} else if files > 0 {
			count = fmt.Sprintf("%d files, ", files)
		}
		s.Say("\r\x1b[Klaunch: %s: %s%.1f MB", now, count, float64(bytes)/1e6)
		s.showing.Store(true)
	}
}

// clearLine takes the progress off the terminal.
func (s *session) clearLine() {
	if s.showing.Swap(false) {
		s.Say("\r\x1b[K")
	}
}

// maxWarnings bounds the warnings that are printed one by one.
const maxWarnings = 10

// warn says which rules are wider than they look.
func (s *session) warn() {
	all := s.policy.Warnings()
	for i, w := range all {
		if i == maxWarnings {
			s.Say("%s: warning: and %d more: see %s check\n", s.Name, len(all)-i, s.Name)
			return
		}
		s.Say("%s: warning: %s\n", s.Name, cli.Safe(w.Error()))
	}
}
