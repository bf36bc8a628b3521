package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"

	vns "github.com/vishvananda/netns"
)

// NS is a handle on a network namespace, which exists at least as long as the
// handle. Its methods are safe for concurrent use, Close excepted.
type NS struct {
	handle vns.NsHandle
}

// Current reports the namespace of the calling thread.
func Current() (*NS, error) {
	h, err := vns.Get()
	if err != nil {
		return nil, fmt.Errorf("open the current network namespace: %w", err)
	}
	return &NS{handle: h}, nil
}

// Open opens the namespace bound to path: /proc/PID/ns/net, /run/netns/NAME.
func Open(path string) (*NS, error) {
	h, err := vns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	return &NS{handle: h}, nil
}

// New makes an empty namespace and does not enter it. It needs CAP_SYS_ADMIN.
func New() (*NS, error) {
	n := &NS{handle: vns.None()}
	err := onOwnThread(func() error {
		h, err := vns.New()
		if err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		n.handle = h
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Do runs fn inside the namespace and reports its error. fn runs in a
// goroutine and on a thread of its own; goroutines that it starts run outside.
// Sockets made by fn belong to the namespace and may be used from anywhere
// afterwards. Entering needs CAP_SYS_ADMIN. fn must not call runtime.Goexit.
func (n *NS) Do(fn func() error) error {
	return onOwnThread(func() error {
		if err := vns.Set(n.handle); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return fn()
	})
}

// Listen is net.Listen inside the namespace, without multipath TCP.
func (n *NS) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var ln net.Listener
	err := n.Do(func() error {
		var lc net.ListenConfig
		lc.SetMultipathTCP(false) // SO_ORIGINAL_DST does not work on multipath sockets
		var err error
		ln, err = lc.Listen(ctx, network, address)
		return err
	})
	return ln, err
}

// Close releases the handle. Sockets made in the namespace live on.
func (n *NS) Close() error {
	if n == nil || !n.handle.IsOpen() {
		return nil
	}
	return n.handle.Close()
}

// onOwnThread runs fn, which may change its thread's network namespace, in a
// fresh goroutine locked to its thread.
//
// Threat: a thread left in the wrong namespace serves some other goroutine
// later, which then dials from inside or listens outside. So the thread goes
// back to the scheduler only after it was restored; otherwise the goroutine
// ends locked, and the runtime destroys the thread.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go runAndRestore(fn, done)
	return <-done
}

func runAndRestore(fn func() error, done chan<- error) {
	runtime.LockOSThread()
	home, err := vns.Get()
	if err != nil {
		runtime.UnlockOSThread() // nothing was changed
		done <- fmt.Errorf("open the current network namespace: %w", err)
		return
	}
	defer home.Close()
	err = fn()
	if back := vns.Set(home); back != nil {
		done <- errors.Join(err, fmt.Errorf("leave network namespace: %w", back))
		return // still locked: the thread dies with this goroutine
	}
	runtime.UnlockOSThread()
	done <- err
}
