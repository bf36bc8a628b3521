package process

import (
	"context"

	"egressd/sandbox"
)

// Supports reports nil when this machine can run spec in this tier.
func (b *Backend) Supports(spec sandbox.Spec) error { return nil }

// Run runs spec.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	return sandbox.Result{ExitCode: 125}, &sandbox.CapabilityError{Isolation: isolationNetns, What: "not built yet"}
}

// Stage runs the inner stage when this process is one and reports its exit
// code. The main function calls it first, before anything else, with os.Args.
func Stage(args []string) (code int, isStage bool) { return 0, false }
