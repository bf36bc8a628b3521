// Package relay carries bytes between two connections. It knows no policy: its
// caller has decided that bytes may pass, and is asked about every piece before
// it is sent on.
//
//	var engine relay.Engine = new(relay.Goroutines)
//	engine.Start(clientToOrigin) // a Way each
//	engine.Start(originToClient)
//
// [Engine] is the seam: another way of moving bytes (readiness loops, io_uring)
// is another Engine, and the doors do not notice.
package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"

	"egressd/proxy/internal/pool"
)

// Engine carries ways. Safe for concurrent use.
type Engine interface {
	// Start carries w.Src to w.Dst in the background and returns at once. It
	// calls w.Ended once, and nothing of w after that.
	Start(w Way)
	// Trim closes the descriptors that are kept for reuse.
	Trim()
}

// Way is one direction of a flow: what an [Engine] needs to know of it.
type Way interface {
	// Src is read, Dst is written. The engine closes neither. Where both are
	// kernel sockets (syscall.Conn), bytes need not pass through this process.
	Src() net.Conn
	Dst() net.Conn
	// Count is called with the length of every piece before the piece is sent
	// on. False: the piece is not sent, and the way ends with ErrStopped.
	Count(n int64) bool
	// Ended is the end of the way: nil when Src ended, else what failed; a
	// *Panic when Count or the engine did. It must not panic.
	Ended(err error)
}

// ErrStopped ends a way whose Count said no.
var ErrStopped = errors.New("stopped")

// Panic is a panic that ended one way, and no other.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprint("panic: ", p.Value) }

// Implementation constants.
const (
	pieceBytes = 32 << 10  // one piece of the copying relay
	bulkBytes  = 256 << 10 // a direction that has carried this much is worth a pipe
)

// Goroutines is an [Engine] with one goroutine a way. The zero Goroutines is
// ready.
//
// No way that waits for bytes holds a buffer or a pipe: an idle tunnel costs
// two descriptors and two goroutines (TestIdleTunnelsHoldNothing). Between a
// goroutine's start and its system calls there are few and small frames: it
// stays within the 2 KiB of stack that it starts with. On two busy cores
// BenchmarkBulk carries about 1 GB/s without an allocation a piece, and
// BenchmarkConnect sets up a flow, both ends in the same process, in 250 us.
type Goroutines struct {
	bufs  pool.Buffers
	pipes pipes
}

// Start implements [Engine].
func (g *Goroutines) Start(w Way) { go g.run(w) }

// Trim implements [Engine].
func (g *Goroutines) Trim() { g.pipes.drain() }

func (g *Goroutines) run(w Way) {
	var err error
	defer func() {
		if r := recover(); r != nil {
			err = &Panic{r, debug.Stack()}
		}
		w.Ended(err)
	}()
	err = g.carry(w)
}

// carry carries w until its source ends (nil) or either side fails.
func (g *Goroutines) carry(w Way) error {
	if d := g.between(w); d != nil {
		return d.carry()
	}
	return g.copy(w)
}

// copy is carry for connections that are not kernel sockets.
func (g *Goroutines) copy(w Way) error {
	dst, src := w.Dst(), w.Src()
	buf := g.bufs.Get(pieceBytes)
	defer g.bufs.Put(buf, pieceBytes)
	for {
		n, err := src.Read(*buf)
		if n > 0 {
			if !w.Count(int64(n)) {
				return ErrStopped
			}
			if _, err := dst.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
