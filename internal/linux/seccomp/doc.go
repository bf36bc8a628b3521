// Package seccomp holds the system-call filters of this module. One line
// installs one, for good:
//
//	err := seccomp.Install(seccomp.Options{}) // the sandboxed program
//	err := seccomp.InstallDaemon()            // egressd
//	err := seccomp.InstallWorker(os.Getpid()) // the interpreter's worker
//
// Listen is another kind: the calling thread asks somebody about some calls.
//
// Install's filter allows by default. It refuses what leads out of the sandbox
// past the network namespace, what can reach the other layers, and parts of the
// kernel that no sandboxed program needs. Each refusal has its reason beside it,
// and an errno that programs fall back on.
//
// What stays allowed on purpose: ptrace, process_vm_readv and pidfd_getfd reach
// only processes of the same pid namespace that the caller could signal anyway,
// and gdb, strace and sanitizers need them; further seccomp filters and Landlock
// rules only narrow.
package seccomp

import "errors"

// ErrNotSupported is returned on platforms without the filter.
var ErrNotSupported = errors.New("no system-call filter for this platform")

// Options choose the filter. The zero Options refuse the most.
type Options struct {
	// Nested lets programs make namespaces and mounts of their own: some put
	// their tools into a sandbox again (Codex, bwrap, Chromium).
	Nested bool
}
