//go:build !linux

package landlock

// ABI reports 0: there is no Landlock here.
func ABI() int { return 0 }

// Scope does nothing.
func Scope() error { return nil }

// Confine reports ErrNotSupported.
func Confine(Files) error { return ErrNotSupported }
