package inside

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"egressd/sandbox/hermetic/control"
)

var errGone = errors.New("the launcher is gone")

// dialTable joins the launcher's answers to who asked.
type dialTable struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan dialled // nil: none
	gone    bool
}

// dialled is one answer.
type dialled struct {
	fd  *os.File
	err error
}

// ask makes a number to ask with, and where its answer arrives.
func (t *dialTable) ask() (uint64, <-chan dialled, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return 0, nil, errGone
	}
	if t.waiting == nil {
		t.waiting = map[uint64]chan dialled{}
	}
	t.last++
	c := make(chan dialled, 1)
	t.waiting[t.last] = c
	return t.last, c, nil
}

// forget gives up waiting for id; what has arrived is closed.
func (t *dialTable) forget(id uint64) {
	t.mu.Lock()
	c := t.waiting[id]
	delete(t.waiting, id)
	t.mu.Unlock()
	select {
	case d := <-c:
		if d.fd != nil {
			d.fd.Close()
		}
	default:
	}
}

// deliver hands an answer to who waits for it.
func (t *dialTable) deliver(o control.DialOutcome, fd *os.File) {
	d := dialled{fd: fd}
	if o.Err != "" || fd == nil {
		d.err = errors.New(o.Err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.waiting[o.ID]
	if c == nil {
		if fd != nil {
			fd.Close()
		}
		return
	}
	delete(t.waiting, o.ID)
	c <- d
}

// close tells everybody who waits that no answer comes.
func (t *dialTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	for id, c := range t.waiting {
		delete(t.waiting, id)
		c <- dialled{err: errGone}
	}
}

// dial is the session's Proxy: the launcher makes both ends of a connection and
// serves the other one as a connection to the gate's proxy.
func (w *worker) dial(ctx context.Context) (net.Conn, error) {
	id, answer, err := w.dials.ask()
	if err != nil {
		return nil, err
	}
	if err := w.ctl.Send(control.Message{Dial: &control.DialOrder{ID: id}}); err != nil {
		w.dials.forget(id)
		return nil, err
	}
	select {
	case d := <-answer:
		if d.err != nil {
			return nil, d.err
		}
		defer d.fd.Close()
		return net.FileConn(d.fd)
	case <-ctx.Done():
		w.dials.forget(id)
		return nil, ctx.Err()
	}
}
