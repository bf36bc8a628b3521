package daemon

import (
	"runtime/debug"
	"runtime/metrics"
)

// Implementation constants, in bytes.
const (
	fewListBytes = 4 << 20 // lists and files that take less change nothing
	leastHeap    = 4 << 20 // what the collector lets a heap grow to in any case
	spareHeap    = 16 << 20
	spareShare   = 16 // of the memory limit, at most one part in so many is spare
)

// memory keeps long lists from doubling what the process holds. The collector lets
// garbage grow to the size of what is alive, and a list is alive, has no pointers to
// follow and is never garbage before the next reload: it is left out of that sum.
// Used by one goroutine.
type memory struct {
	percent int    // GOGC as it was set from outside; negative: no collector, nothing is done
	lists   int    // what the lists took last
	which   string // the policies that were read from long files then

	// spare is never touched, so that it takes no memory, but counts as alive: garbage
	// may grow by as much more before it is collected. A small heap would be collected
	// some ten times a second under load, which costs a tenth of a flow's set-up.
	spare []byte
}

func newMemory() *memory {
	m := &memory{percent: debug.SetGCPercent(100)}
	debug.SetGCPercent(m.percent)
	m.spare = make([]byte, spareFor(m.percent, debug.SetMemoryLimit(-1)))
	return m
}

// fit takes lists of this many bytes into account. When other policies than before
// were read from long files, what the old ones and their reading took goes back to the system.
func (m *memory) fit(lists int, which string) {
	if m.percent < 0 {
		return
	}
	if lists >= fewListBytes {
		m.spare = nil // the heap is large enough
	}
	if which != m.which {
		m.which = which
		debug.FreeOSMemory() // a collection that stops nobody; its end is waited for here
	}
	if lists < fewListBytes && m.lists < fewListBytes {
		return
	}
	m.lists = lists
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	alive := lists
	if live[0].Value.Kind() == metrics.KindUint64 {
		alive = int(live[0].Value.Uint64())
	}
	debug.SetGCPercent(percentFor(m.percent, alive, lists))
}

// spareFor is how much is spare under a memory limit: none where there is little.
func spareFor(percent int, limit int64) int {
	if percent < 0 || limit/spareShare < spareHeap {
		return 0
	}
	return spareHeap
}

// percentFor is the GOGC under which garbage grows as it would by percent without
// the lists.
func percentFor(percent, alive, lists int) int {
	rest := max(alive-lists, leastHeap)
	return max(1, int(int64(percent)*int64(rest)/int64(rest+lists)))
}

// lists reports what the list files of all policies take, and the digests of the
// policies that were read from long files.
func (d *daemon) lists() (n int, which string) {
	for _, p := range d.policies {
		n += p.current.Load().ListBytes()
		if p.inputs.bytes >= fewListBytes {
			which += p.current.Load().Digest()
		}
	}
	return n, which
}
