//go:build !linux

package main

import (
	"context"
	"fmt"
	"io"
)

// run can attack nothing on this system.
func run(_ context.Context, _ []string, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "attacks: the process tier is for Linux")
	return 1
}
