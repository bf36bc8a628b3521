// Package seccomp holds the system-call filter that the harness runs under.
//
// The filter allows by default and refuses what leads out of the sandbox past
// the network namespace, what can reach the walls, and kernel surface that no
// harness needs. It is one wall of several: each refusal has its reason beside
// it, and an errno that programs fall back on.
//
// What stays allowed on purpose: ptrace, process_vm_readv and pidfd_getfd reach
// only processes of the own pid namespace that the caller could signal anyway,
// and gdb, strace and sanitizers need them; further seccomp filters and
// Landlock rules only narrow.
package seccomp

import "errors"

// ErrNotSupported is returned on platforms without the filter.
var ErrNotSupported = errors.New("no system-call filter for this platform")

// Options choose the filter. The zero Options are the whole of it.
type Options struct {
	// Nested lets programs make namespaces and mounts of their own, for those
	// that put their tools into a sandbox again (Codex, bwrap, Chromium).
	Nested bool
}
