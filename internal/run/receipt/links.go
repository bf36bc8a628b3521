package receipt

import (
	"fmt"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// terminal are the types of the last event, and the status that goes with each.
var terminal = map[string]string{
	"run.completed": format.StatusCompleted, "run.failed": format.StatusFailed, "run.cancelled": format.StatusCancelled,
}

// verifyChain reports where a chain is broken, and why; "" if it is whole.
func verifyChain(entries []any, genesis string) string {
	prev := genesis
	for seq, v := range entries {
		broken := func(why string) string { return fmt.Sprintf("event chain broken at seq %d: %s", seq, why) }
		entry, ok := v.(canonical.Object)
		if !ok {
			return broken("missing entry")
		}
		if entry["seq"] != float64(seq) {
			return broken("sequence gap")
		}
		if entry["prev"] != prev {
			return broken("prev hash mismatch")
		}
		text, err := canonical.Encode(nil, canonical.Object{"seq": entry["seq"], "ts": entry["ts"], "prev": entry["prev"], "event": entry["event"]})
		if err != nil || entry["hash"] != canonical.Sum(text) {
			return broken("event hash mismatch")
		}
		prev = canonical.Sum(text)
	}
	return ""
}
