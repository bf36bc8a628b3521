// Package seccomp holds the system-call filter that the harness runs under.
package seccomp

import "errors"

// ErrNotSupported is returned on platforms without the filter.
var ErrNotSupported = errors.New("no system-call filter for this platform")
