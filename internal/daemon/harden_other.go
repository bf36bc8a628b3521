//go:build !linux

package daemon

import "log/slog"

// harden says that nothing keeps other processes of this user out.
func harden(log *slog.Logger) {
	log.Warn("other processes of this user can look into egressd on this system")
}

// confine does nothing: harden has said so.
func confine(*slog.Logger) {}

// openFiles reports 0: not known.
func openFiles() uint64 { return 0 }
