package hermetic

import (
	"context"
	"runtime"
	"time"

	"egressd/hermetic/limits"
)

// memoryEvery is the time between two checks of memory. What grows faster than
// that needs a limit of the kernel.
const memoryEvery = 50 * time.Millisecond

// watchMemory ends the script when the process holds more than the limit, so that
// it ends with a reason and not in a crash. It returns when ctx ends. (Package
// runtime/metrics would tell it more cheaply, and costs every start of a program
// that imports it a tenth of a millisecond.)
func watchMemory(ctx context.Context, b *limits.Budget) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if held() <= uint64(b.Limits.Memory) {
			continue
		}
		runtime.GC() // some of it may be garbage
		if held() > uint64(b.Limits.Memory) {
			b.Exceed(&limits.Exceeded{Name: "memory", Limit: b.Limits.Memory, What: "bytes of memory were needed"}) //nolint:errcheck // it ends ctx
			return
		}
	}
}

// held is what heap and stacks hold, garbage included.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
