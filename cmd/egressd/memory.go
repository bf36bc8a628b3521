package main

import (
	"log/slog"
	"os"
	"runtime/debug"

	"egressd/internal/daemon/cgroup"
)

// memoryShare is how much of the control group's memory the runtime may use, in
// percent. The rest is for what the kernel holds for connections.
const memoryShare = 80

// memoryMax reports the limit on the memory of this process, in bytes: its control
// group's. Zero: there is none.
func memoryMax() int64 {
	limit, _ := cgroup.MemoryMax(os.DirFS("/"))
	return limit
}

// limitMemory makes the runtime collect garbage before the kernel kills the
// process at limit, in bytes; zero: there is none. Without it, half of the connections that
// fit would reach a limit of 256 MiB. GOMEMLIMIT, which the runtime reads itself, comes first.
func (p *program) limitMemory(limit int64, log *slog.Logger) {
	if p.Getenv("GOMEMLIMIT") != "" || limit == 0 {
		return
	}
	share := limit / 100 * memoryShare
	debug.SetMemoryLimit(share)
	log.Info("memory is kept below the control group's limit", "limit", limit, "runtime", share)
}
