//go:build small

package main

import "egressd/internal/cli"

// The container image is built with the tag small: without the shell and the
// commands of the hermetic tier, which are for a person's machine, and without
// the double of the hosted API.

func inner([]string) (int, bool) { return 0, false }

const small = true

func (l *launcher) developing() []cli.Command { return nil }
