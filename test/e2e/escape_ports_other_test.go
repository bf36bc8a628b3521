//go:build linux && !amd64

package e2e

// portCalls: this machine has no such ports.
func portCalls(func(name string, nr int, ctl control, a ...uint64) escape) []escape { return nil }
