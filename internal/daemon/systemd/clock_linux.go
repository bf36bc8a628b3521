package systemd

import "golang.org/x/sys/unix"

// monotonicMicroseconds reads CLOCK_MONOTONIC, the clock of MONOTONIC_USEC.
func monotonicMicroseconds() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, err
	}
	return ts.Nano() / 1000, nil
}
