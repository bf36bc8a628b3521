package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"egressd/gate"
	"egressd/hermetic/limits"
	"egressd/internal/run/summary"
	"egressd/sandbox"
	"egressd/sandbox/hermetic"
)

const tierHermetic = "hermetic"

// scripts is what the command line says for the hermetic tier alone.
type scripts struct {
	file    string // --script
	overlay bool
	bounds  limits.Limits
}

// flag reports the first of these flags that was given; "" none was.
func (c *scripts) flag() string {
	switch {
	case c.file != "":
		return "--script"
	case c.overlay:
		return "--overlay"
	case c.bounds != (limits.Limits{}):
		return "--limit"
	}
	return ""
}

// setLimit reads NAME=N, N in bytes or pieces, with K, M or G for powers of 1024.
func (c *scripts) setLimit(s string) error {
	name, text, ok := strings.Cut(s, "=")
	var names []string
	for _, f := range c.bounds.Fields() {
		if names = append(names, f.Name); f.Name != name || !ok {
			continue
		}
		n, err := size(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*f.Value = n
		return nil
	}
	if !ok {
		return fmt.Errorf("%q: write NAME=N; NAME is one of %s", s, strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no limit %q: %s", name, strings.Join(names, ", "))
}

func size(s string) (int64, error) {
	digits, shift := strings.TrimRight(s, "KMGkmg"), 0
	if suffix := s[len(digits):]; len(suffix) == 1 {
		shift = 10 * (1 + strings.Index("KMG", strings.ToUpper(suffix)))
	} else if suffix != "" {
		return 0, fmt.Errorf("%q is no number: write 1000, 64K, 512M or 2G", s)
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return 0, fmt.Errorf("%q is no number above 0: write 1000, 64K, 512M or 2G", s)
	}
	return int64(n << shift), nil
}

// validateHermetic refuses what has no meaning without processes and sockets.
func (o *options) validateHermetic() error {
	if !hasWorker {
		return &sandbox.CapabilityError{
			Isolation: tierHermetic, What: "this launch was built small, as for the container image: it holds no shell and no commands",
			Fix: "take a launch that was built without the tag small, or leave --tier hermetic out",
		}
	}
	for _, f := range []struct{ name, why string }{
		{"isolation", "the hermetic tier is an isolation of its own"},
		{"publish", "a script of the hermetic tier has no server to reach"},
		{"host-port", "a script of the hermetic tier has no network but what --allow lets curl fetch; --host gives a name an address"},
		{"nested", "the hermetic tier runs no programs, and so none that makes sandboxes"},
		{"egressd", "the hermetic tier has no doors to hand over: it serves its one client itself"},
	} {
		if slices.Contains(o.given, f.name) {
			return fmt.Errorf("--%s has no use with --tier hermetic: %s", f.name, f.why)
		}
	}
	return nil
}

// scriptArgv is the command line that the run stands for: the script's text is
// in it, wherever it came from.
func (s *session) scriptArgv() ([]string, error) {
	name := s.opts.scripts.file
	if name == "" {
		if len(s.opts.argv) == 0 {
			return []string{"bash", "-s"}, nil
		}
		return s.opts.argv, nil
	}
	f := s.Stdin
	if name != "-" {
		var err error
		if f, err = os.Open(name); err != nil {
			return nil, fmt.Errorf("--script: %w", err)
		}
		defer f.Close()
	}
	limit := s.opts.scripts.bounds.WithDefaults().Source
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("--script: %w", err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("--script %s is longer than %d bytes; if it is right, raise the limit: --limit source=N", name, limit)
	}
	shell, err := interpreter(string(text))
	if err != nil {
		return nil, err
	}
	return append(append(shell, "-c", string(text), name), s.opts.argv...), nil
}

// interpreter reads which shell a script's first line asks for, with its
// options, as the kernel does; bash where it asks for none.
func interpreter(script string) ([]string, error) {
	line, ok := strings.CutPrefix(script, "#!")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return []string{"bash"}, nil
	}
	for len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	switch name := filepath.Base(words[0]); name {
	case "sh", "bash":
		words[0] = name
		return words, nil
	case "dash", "ash":
		words[0] = "sh"
		return words, nil
	default:
		return nil, &sandbox.CapabilityError{
			Isolation: tierHermetic,
			What:      "the script asks for " + summary.Safe(name) + ", and this tier interprets sh and bash alone",
			Fix:       "leave --tier hermetic out: the process tier runs any program behind the same rules",
		}
	}
}

// hermetic builds the backend of the hermetic tier, and what spec says for it.
func (s *session) hermetic(spec *sandbox.Spec, g gate.Config) (*hermetic.Backend, error) {
	argv, err := s.scriptArgv()
	if err != nil {
		return nil, err
	}
	spec.Argv = argv
	if s.opts.scripts.file == "-" {
		spec.Stdin = nil
	}
	spec.Env = hermetic.Env(spec.Env, append(slices.Clone([]string(s.opts.env)), s.secrets.Env()...))
	b := &hermetic.Backend{Gate: g, Limits: s.opts.scripts.bounds, Overlay: s.opts.scripts.overlay, Changed: s.changed}
	spec.Notes = func(line string) { s.Say("launch: %s\n", summary.Safe(line)) }
	if s.Getenv("LAUNCH_TRACE") != "" {
		b.Trace = s.Stderr
	}
	return b, nil
}

// shownChanges is how many changes are named; the events have more.
const shownChanges = 20

// changed tells what an overlay kept out of the workspace.
func (s *session) changed(list []hermetic.Change, total int) {
	if s.opts.quiet {
		return
	}
	if total == 0 {
		s.Say("launch: no changes; the workspace is as it was\n")
		return
	}
	var b strings.Builder
	for i, c := range list[:min(len(list), shownChanges)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(c.Kind) + " " + summary.Safe(c.Path))
	}
	if more := total - min(len(list), shownChanges); more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	noun := "changes"
	if total == 1 {
		noun = "change"
	}
	s.Say("launch: %d %s kept out of the workspace: %s\n", total, noun, b.String())
}
