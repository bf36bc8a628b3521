//go:build !linux

package kernel

import (
	"context"
	"errors"
	"io"
	"runtime"
)

// Probe reports that this platform has no network namespaces.
func Probe(context.Context, Options) []Finding {
	return []Finding{{
		Name: "kernel", Needed: true,
		Detail: runtime.GOOS + " has no network namespaces: launch needs Linux",
		Fix:    "run launch in a Linux virtual machine or container",
	}}
}

// Inside reports an error: there is nothing to try.
func Inside(io.Writer, func() (Prepared, error)) error {
	return errors.New("kernel: not on this platform")
}
