//go:build !linux

package systemd

import "errors"

// monotonicMicroseconds reads the clock of MONOTONIC_USEC, which only Linux has.
func monotonicMicroseconds() (int64, error) {
	return 0, errors.New("service manager: this system has no CLOCK_MONOTONIC of systemd's")
}
