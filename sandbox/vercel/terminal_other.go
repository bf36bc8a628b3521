//go:build !linux

package vercel

import "context"

// onTerminal is for Linux only: elsewhere programs run without a terminal.
func (r *run) onTerminal(context.Context) (is bool, err error) { return false, nil }
