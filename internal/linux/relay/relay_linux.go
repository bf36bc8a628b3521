package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/screen"
)

const (
	chunk      = 64 << 10 // bytes of output at a time
	heldChunks = 4        // that a Hold shows first
	keysChunk  = 4 << 10  // bytes of keys at a time: no more is taken than the program reads

	// holdLimit is how long the terminal may take for what is on its way when the
	// caller wants it, and flushLimit for what the program wrote before it stopped.
	holdLimit, flushLimit = 2 * time.Second, 2 * time.Second
	ownLimit              = 1000 // milliseconds for each piece of the relay's own sequences
	// stallLimit is how long a terminal that takes no output is waited for when the
	// program is gone: a person may have stopped it, or the connection is slow.
	stallLimit = 10 * time.Second
	// shrunk is how long the window seems smaller to programs that are to draw
	// everything again: many do that only for a size that is new.
	shrunk = 50 * time.Millisecond
)

// Relay carries keys and output. Safe for concurrent use.
type Relay struct {
	t      *Terminal
	master int
	shared bool
	stop   stop

	output, keys direction
	progress     atomic.Int64 // chunks of output that the terminal took
	modes        screen.Modes // of whoever has output's turn
	buf          []byte       // of whoever has output's turn

	mu                   sync.Mutex
	granted, held, ended bool
	reading              bool          // keys are the goroutine's to read
	saved                *unix.Termios // the person's, while the terminal is raw
}

// direction is keys or output.
type direction struct {
	// turn is full while somebody uses the direction: the goroutine for as long as one
	// chunk takes, or the relay to keep it from going on.
	turn chan struct{}
	done chan struct{} // closed when the goroutine has ended
}

func newDirection() direction {
	return direction{turn: make(chan struct{}, 1), done: make(chan struct{})}
}

// stop ends both directions.
type stop struct {
	fd   int           // an eventfd, readable then
	over chan struct{} // closed then
}

// Start shows what comes out of the pseudo-terminal master on t, which stays the
// caller's, and must stay open until End; so does master. With shared, other programs
// use the terminal at the same time, as in a pipeline.
func Start(t *Terminal, master *os.File, shared bool) (*Relay, error) {
	own, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("pseudo-terminal: %w", err)
	}
	err = unix.SetNonblock(own, true)
	event := -1
	if err == nil {
		event, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
	}
	if err != nil {
		unix.Close(own)
		return nil, fmt.Errorf("pseudo-terminal: %w", err)
	}
	r := &Relay{
		t: t, master: own, shared: shared, stop: stop{event, make(chan struct{})},
		buf: make([]byte, chunk), output: newDirection(), keys: newDirection(),
	}
	r.keys.turn <- struct{}{} // not granted
	r.Resize()
	go r.show()
	go r.read()
	return r, nil
}

// Grant sends keys to the program from now on. The terminal is set so that each of
// them arrives as it is. The caller is in the foreground.
func (r *Relay) Grant() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted = r.t.keys
	r.settle()
}

// Granted reports whether keys go to the program, but for a Hold.
func (r *Relay) Granted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.granted
}

// Revoke leaves keys to others, and sets the terminal as it was found.
func (r *Relay) Revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.granted = false
	r.settle()
}

// Regain is Grant for a process that was stopped without notice, while others used
// the terminal and set it as they like.
func (r *Relay) Regain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading {
		r.setRaw()
	}
}

// settle makes what is so what shall be so. The caller has mu.
func (r *Relay) settle() {
	reading := r.granted && !r.held && !r.ended
	switch {
	case reading == r.reading:
	case reading:
		var err error
		if r.saved, err = unix.IoctlGetTermios(r.t.fd, unix.TCGETS); err != nil {
			r.saved = nil // hung up: there is nothing to set
		}
		r.setRaw()
		<-r.keys.turn
	default:
		r.keys.turn <- struct{}{} // the other waits for nothing while it has this
		r.restore()
	}
	r.reading = reading
}

func (r *Relay) setRaw() {
	if r.saved != nil {
		mode := raw(*r.saved, r.shared)
		r.t.set(&mode)
	}
}

func (r *Relay) restore() {
	if r.saved != nil {
		r.t.set(r.saved)
		r.saved = nil
	}
}

// Resize gives the program's terminal the size of the person's.
func (r *Relay) Resize() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resize(0)
}

// resize takes so many lines off. The caller has mu.
func (r *Relay) resize(less uint16) {
	size, err := unix.IoctlGetWinsize(r.t.fd, unix.TIOCGWINSZ)
	if err != nil {
		return
	}
	if r.ended {
		return // the descriptor is another's now
	}
	size.Row -= min(less, size.Row)
	unix.IoctlSetWinsize(r.master, unix.TIOCSWINSZ, size) //nolint:errcheck // the program is gone
}

// errHeld is a terminal that does not take what is on its way.
var errHeld = errors.New("the terminal takes no output")

// Hold keeps the program's output back and its hands off the keys, and resets the
// terminal, so that the caller can use it. After an error nothing has changed.
//
// Threat: the program writes over what the caller shows, or what it wrote before
// hides it -> nothing comes from it until Release, and see [screen.Reset].
// Left over: what stood there before stays, above.
func (r *Relay) Hold(ctx context.Context) error {
	late := time.NewTimer(holdLimit)
	defer late.Stop()
	select {
	case r.output.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-late.C:
		return errHeld
	}
	// What was written before is shown before: no more than a pseudo-terminal holds.
	for more, n := true, 0; more && n < heldChunks; n++ {
		more, _ = r.pump()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
	r.settle()
	r.write([]byte(screen.Reset+r.modes.Colours()), ownLimit)
	return nil
}

// Release ends a Hold. The program is told to draw its screen again.
func (r *Relay) Release() {
	defer func() { <-r.output.turn }()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.write([]byte(r.modes.Again()), ownLimit)
	if r.modes.Touched() && r.granted {
		r.resize(1)
		time.AfterFunc(shrunk, r.Resize)
	}
	r.held = false
	r.settle()
}

// Flush shows what the program has written so far.
func (r *Relay) Flush() {
	late := time.NewTimer(flushLimit)
	defer late.Stop()
	for more := true; more; {
		select {
		case r.output.turn <- struct{}{}:
			var err error
			more, err = r.pump()
			more = more && err == nil
			<-r.output.turn
		case <-late.C:
			return
		}
	}
}

// End shows the rest of what the program wrote, sets the terminal as it was found,
// and closes master. The program and all that could write are gone, or End waits
// for them. It does not wait for ever for the terminal.
func (r *Relay) End() {
	for done, before := false, int64(-1); !done; {
		stalled := time.NewTimer(stallLimit)
		select {
		case <-r.output.done:
			done = true
		case <-stalled.C:
			now := r.progress.Load()
			done, before = now == before, now
		}
		stalled.Stop()
	}
	close(r.stop.over)
	unix.Write(r.stop.fd, []byte{1, 1, 1, 1, 1, 1, 1, 1}) //nolint:errcheck // a counter far from its end
	<-r.output.done
	<-r.keys.done
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.settle()
	if end := r.modes.End(); end != "" && r.t.Foreground() {
		r.write([]byte(end), ownLimit)
	}
	unix.Close(r.master)
	unix.Close(r.stop.fd)
}

// restoreOnPanic sets the terminal as it was found before a bug of one direction
// ends the process.
func (r *Relay) restoreOnPanic() {
	if p := recover(); p != nil {
		r.restore()
		panic(p)
	}
}
