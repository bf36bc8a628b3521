//go:build amd64 || arm64

package inside

// handlerPC is the address of a signal handler that does nothing. It is written
// in assembly because the kernel calls it on whatever thread the signal finds,
// without what Go code needs.
func handlerPC() uintptr
