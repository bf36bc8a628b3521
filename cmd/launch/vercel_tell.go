package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"egressd/sandbox/vercel"
)

// shownBack bounds what is listed of each kind.
const shownBack = 10

// cameBack tells what a run changed in the workspace, and what it could not.
func (s *session) cameBack(c vercel.Changes) {
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
	if n := len(all); n > 0 && !s.opts.quiet {
		more := ""
		if n > shownBack {
			all, more = all[:shownBack], fmt.Sprintf(", and %d more", n-shownBack)
		}
		noun := "changes"
		if n == 1 {
			noun = "change"
		}
		s.Say("launch: %d %s came back: %s%s\n", n, noun, strings.Join(all, ", "), more)
	}
	for i, p := range c.Conflicts {
		if i == shownBack {
			s.Say("launch: and %d more conflicts\n", len(c.Conflicts)-i)
			break
		}
		s.Say("launch: conflict: %s: %s; the file here stays\n", printable(p.Path), p.Why)
	}
	if c.Aside != "" {
		s.Say("launch: what came back for them is in %s\n", c.Aside)
	}
	for i, p := range c.Refused {
		if i == shownBack {
			s.Say("launch: and %d more refused\n", len(c.Refused)-i)
			break
		}
		s.Say("launch: refused: %s: %s\n", printable(p.Path), p.Why)
	}
}

// printable is a name as a terminal may show it.
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// progressInterval is how often a terminal is told.
const progressInterval = 200 * time.Millisecond

// progress shows on a terminal how far a stage is, in one line.
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
