//go:build !amd64 && !arm64

package inside

// handlerPC has no handler for this processor: the signals concerned are
// ignored instead, by the program inside too. The system-call filter knows the
// same two processors.
func handlerPC() uintptr { return ignored }
