//go:build !linux

package watch

import "errors"

// newEvents reports an error here: frequent scans take the place of events.
func newEvents() (source, error) { return nil, errors.New("file changes are reported on Linux only") }
