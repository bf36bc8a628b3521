//go:build !linux

package process

import (
	"context"

	"egressd/sandbox"
)

func unsupported(isolation string) error {
	return &sandbox.CapabilityError{
		Isolation: isolation,
		What:      "network namespaces exist on Linux only",
		Fix:       "run it in a Linux virtual machine or container",
	}
}

// LimitsHere reports that nothing can be bounded here.
func LimitsHere() Keeps { return Keeps{WhyNot: unsupported(isolationNetns)} }

// Supports reports a *sandbox.CapabilityError: this tier needs Linux.
func (b *Backend) Supports(sandbox.Spec) error { return unsupported(isolationNetns) }

// Run reports a *sandbox.CapabilityError: this tier needs Linux.
func (b *Backend) Run(context.Context, sandbox.Spec) (sandbox.Result, error) {
	return sandbox.Result{ExitCode: 125}, unsupported(isolationNetns)
}
