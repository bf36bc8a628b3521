package daemon

import (
	"runtime/debug"
	"runtime/metrics"
)

// Implementation constants, in bytes.
const (
	fewListBytes = 4 << 20 // lists and files that take less change nothing
	leastHeap    = 4 << 20 // what the collector lets a heap grow to in any case
)

// memory keeps long lists from doubling what the process holds. The collector lets
// garbage grow to the size of what is alive, and a list is alive, has no pointers to
// follow and is never garbage before the next reload: it is left out of that sum.
// Used by one goroutine.
type memory struct {
	percent int    // GOGC as it was set from outside; negative: no collector, nothing is done
	lists   int    // what the lists took last
	which   string // the policies that were read from long files then
}

func newMemory() *memory {
	m := &memory{percent: debug.SetGCPercent(100)}
	debug.SetGCPercent(m.percent)
	return m
}

// fit takes lists of this many bytes into account. When other policies than before
// were read from long files, what the old ones and their reading took goes back to the system.
func (m *memory) fit(lists int, which string) {
	if m.percent < 0 {
		return
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
