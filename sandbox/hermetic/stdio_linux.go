package hermetic

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func (b *Backend) skips(wall string) bool { return slices.Contains(b.hooks.skip, wall) }

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
