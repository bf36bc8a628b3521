package inside

import (
	"context"
	"runtime/metrics"
	"time"

	"egressd/sandbox/hermetic/limits"
)

// memoryLook is how often memory is looked at. The kernel's limit stands behind
// it for what grows faster.
const memoryLook = 50 * time.Millisecond

// watchMemory ends the run when what it holds is more than it may, so that it
// ends with a reason and not in a crash. It returns when ctx ends.
func watchMemory(ctx context.Context, b *limits.Budget) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	held := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(held)
		if held[0].Value.Uint64()+held[1].Value.Uint64() > uint64(b.Limits.Memory) {
			b.Exceed(&limits.Exceeded{Name: "memory", Limit: b.Limits.Memory, What: "bytes of memory were needed"}) //nolint:errcheck // it ends ctx
			return
		}
	}
}
