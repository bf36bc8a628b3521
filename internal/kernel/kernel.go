// Package kernel finds out what this machine can do for launch, and what to
// change where it can't.
package kernel

import "context"

// Finding is one thing the machine can or can't do.
type Finding struct {
	Name   string // short: "user namespaces"
	OK     bool
	Needed bool   // false: launch works without it, with less
	Detail string // what was found
	Fix    string // exact commands; "" when there is nothing to do
}

// Options says how to probe.
type Options struct {
	// Binary is the path of the launch binary, for an AppArmor profile.
	Binary string
	// Inside is the command line (program first) of a process that calls
	// Inside and exits. It is run in new user and network namespaces. Nil: what
	// can only be seen from inside is reported as not tried.
	Inside []string
}

// Probe tries what launch needs, within ctx.
func Probe(ctx context.Context, o Options) []Finding { return nil }
