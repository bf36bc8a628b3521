// Package limits bounds what one hermetic run may use, with a reason that a
// person can read when a bound is met. The worker's rlimits stand behind it.
package limits

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Limits are the bounds of one run. A zero field is its default.
type Limits struct {
	Commands int64 `json:"commands,omitempty"` // simple commands, builtins included; 1,000,000
	Loops    int64 `json:"loops,omitempty"`    // turns of all loops of the shell; 1,000,000
	Steps    int64 `json:"steps,omitempty"`    // inner steps of awk, sed, jq and regular expressions; 100,000,000
	Calls    int64 `json:"calls,omitempty"`    // depth of functions, source, eval, substitutions and sh -c together; 200
	Nesting  int64 `json:"nesting,omitempty"`  // depth of syntax in one script; 200
	Source   int64 `json:"source,omitempty"`   // bytes of one script; 4 MiB
	Output   int64 `json:"output,omitempty"`   // bytes on the standard output and error together; 256 MiB
	Written  int64 `json:"written,omitempty"`  // bytes written to files, not to devices; 1 GiB
	Globs    int64 `json:"globs,omitempty"`    // results of one glob or brace expansion; 100,000
	String   int64 `json:"string,omitempty"`   // bytes of one variable or expansion; 64 MiB
	Array    int64 `json:"array,omitempty"`    // elements of one array; 1,000,000
	Files    int64 `json:"files,omitempty"`    // files open at once, and descriptors of the script; 200
	Jobs     int64 `json:"jobs,omitempty"`     // pipeline members and background jobs at once; 200
	Memory   int64 `json:"memory,omitempty"`   // bytes of the worker's memory; 512 MiB
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	for _, f := range []struct {
		field *int64
		def   int64
	}{
		{&l.Commands, 1_000_000},
		{&l.Loops, 1_000_000},
		{&l.Steps, 100_000_000},
		{&l.Calls, 200},
		{&l.Nesting, 200},
		{&l.Source, 4 << 20},
		{&l.Output, 256 << 20},
		{&l.Written, 1 << 30},
		{&l.Globs, 100_000},
		{&l.String, 64 << 20},
		{&l.Array, 1_000_000},
		{&l.Files, 200},
		{&l.Jobs, 200},
		{&l.Memory, 512 << 20},
	} {
		if *f.field <= 0 {
			*f.field = f.def
		}
	}
	return l
}

// Exceeded says which bound was met.
type Exceeded struct {
	Name  string // the name of --limit
	Limit int64
	What  string // "commands were run", "bytes were written to files"
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("limit: more than %d %s; if the script is right, raise it: --limit %s=N", e.Limit, e.What, e.Name)
}

// Budget counts what a run has used. Once a bound is met the run ends: Cause
// reports why, and the context is cancelled with it. Safe for concurrent use.
type Budget struct {
	Limits Limits // with defaults

	commands, loops, steps, output, written atomic.Int64

	cancel context.CancelCauseFunc
	mu     sync.Mutex
	cause  error
}

// New starts a budget. The context that it returns ends when a bound is met or
// parent does; the caller calls stop when the run is over.
func New(parent context.Context, l Limits) (ctx context.Context, b *Budget, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &Budget{Limits: l.WithDefaults(), cancel: cancel}, func() { cancel(nil) }
}

// Command counts one command.
func (b *Budget) Command() error {
	return b.count(&b.commands, 1, b.Limits.Commands, "commands", "commands were run")
}

// Loop counts one turn of a loop.
func (b *Budget) Loop() error {
	return b.count(&b.loops, 1, b.Limits.Loops, "loops", "loop turns were made")
}

// Steps counts n inner steps of a command; call it every thousand or so.
func (b *Budget) Steps(n int64) error {
	return b.count(&b.steps, n, b.Limits.Steps, "steps", "steps were made inside commands")
}

// Output counts n bytes for the standard output or error.
func (b *Budget) Output(n int64) error {
	return b.count(&b.output, n, b.Limits.Output, "output", "bytes were printed")
}

// Written counts n bytes for files.
func (b *Budget) Written(n int64) error {
	return b.count(&b.written, n, b.Limits.Written, "written", "bytes were written to files")
}

func (b *Budget) count(at *atomic.Int64, n, limit int64, name, what string) error {
	if at.Add(n) <= limit {
		return nil
	}
	return b.Exceed(&Exceeded{Name: name, Limit: limit, What: what})
}

// Exceed ends the run because of e, and reports the first bound that was met.
func (b *Budget) Exceed(e *Exceeded) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		b.cause = e
		b.cancel(e)
	}
	return b.cause
}

// Cause reports the bound that ended the run; nil: none was met.
func (b *Budget) Cause() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cause
}
