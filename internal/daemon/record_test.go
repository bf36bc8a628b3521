package daemon

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
)

// disk is full or has room.
type disk struct{ full atomic.Bool }

func (d *disk) Write(p []byte) (int, error) {
	if d.full.Load() {
		return 0, errors.New("no space left")
	}
	return len(p), nil
}

// A daemon is not ready while it cannot record, says why, and finds out by itself that
// it can again.
func TestReadyFollowsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := new(disk)
		d := &daemon{record: &record{writer: &event.Writer{W: out}}}
		d.state.Store(stateServing)
		if err := d.Ready(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go d.record.probe(ctx)
		out.full.Store(true)
		_ = d.record.writer.Emit(startedEvent("v"))
		for range 3 {
			if err := d.Ready(); err == nil || !strings.Contains(err.Error(), "everything is denied: events: no space left") {
				t.Fatal(err)
			}
			time.Sleep(2 * probeEvery)
		}
		out.full.Store(false)
		time.Sleep(2 * probeEvery)
		if err := d.Ready(); err != nil {
			t.Error(err)
		}
		stop()
		synctest.Wait()
	})
}
