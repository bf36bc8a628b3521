package hermetic

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"egressd/gate"
	"egressd/sandbox/hermetic/control"
)

// maxConns bounds a worker's connections to the gate at one time.
const maxConns = 64

// door is the listener of a gate whose connections are made here: each is one
// half of a socketpair, the other half is the worker's. Nobody else can connect.
type door struct {
	conns  chan net.Conn
	live   atomic.Int32
	closed chan struct{}
	once   sync.Once
}

func newDoor() *door {
	return &door{conns: make(chan net.Conn, maxConns), closed: make(chan struct{})}
}

// Accept reports the next connection.
func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept, and what nobody accepted.
func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	for {
		select {
		case c := <-d.conns:
			c.Close()
		default:
			return nil
		}
	}
}

// Addr is the address of a socket without a name.
func (d *door) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// connect makes a connection and reports the worker's end of it.
func (d *door) connect() (*os.File, error) {
	if d.live.Add(1) > maxConns {
		d.live.Add(-1)
		return nil, errors.New("too many connections at once")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		d.live.Add(-1)
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "worker")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		d.live.Add(-1)
		theirs.Close()
		return nil, err
	}
	d.conns <- &counted{UnixConn: c.(*net.UnixConn), live: &d.live} // there is room: see live
	return theirs, nil
}

// counted is a connection that is counted until it is closed.
type counted struct {
	*net.UnixConn
	live *atomic.Int32
	once sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	c.once.Do(func() { c.live.Add(-1) })
	return c.UnixConn.Close()
}

// openDoor makes the gate and serves it, if the policy could let anything out.
func (r *running) openDoor(ctx context.Context, wg *sync.WaitGroup, start *control.Start) error {
	if !r.b.open() {
		return nil
	}
	c := r.b.Gate
	c.Isolation = isolation
	g, err := gate.New(c)
	if err != nil {
		return err
	}
	start.Network = true
	if start.Roots = g.Bundle(); start.Roots == nil {
		start.Roots = gate.Roots(c.Authorities)
	}
	r.door = newDoor()
	wg.Go(func() { _ = g.Serve(ctx, gate.Doors{Explicit: []net.Listener{r.door}}) }) // a door that closes early is logged
	return nil
}

// dial answers a worker that wants a connection to the gate.
func (r *running) dial(id uint64) {
	answer := control.DialOutcome{ID: id}
	if r.door == nil {
		answer.Err = "this run has no network"
		r.tell(control.Message{Dialled: &answer}, nil)
		return
	}
	f, err := r.door.connect()
	if err != nil {
		answer.Err = err.Error()
	}
	r.tell(control.Message{Dialled: &answer}, f)
}
