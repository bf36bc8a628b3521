//go:build !linux

package main

import (
	"fmt"
	"io"
)

// run reports that the attempts are about Linux.
func run(_ []string, _ io.Reader, _, stderr io.Writer) int {
	fmt.Fprintln(stderr, "probe: these attempts are about Linux")
	return 125
}
