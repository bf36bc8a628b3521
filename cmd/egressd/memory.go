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

// limitMemory makes the runtime collect garbage before the kernel kills the
// process. Without it, half of the connections that fit would reach a limit of
// 256 MiB. GOMEMLIMIT, which the runtime reads itself, comes first.
func (p *program) limitMemory(log *slog.Logger) {
	if p.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, found := cgroup.MemoryMax(os.DirFS("/"))
	if !found {
		return
	}
	share := limit / 100 * memoryShare
	debug.SetMemoryLimit(share)
	log.Info("memory is kept below the control group's limit", "limit", limit, "runtime", share)
}
