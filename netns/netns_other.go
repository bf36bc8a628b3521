//go:build !linux

package netns

import (
	"context"
	"net"
	"os"
)

// NS is a handle on a network namespace, which this platform does not have.
type NS struct{}

// Current reports ErrNotSupported.
func Current() (*NS, error) { return nil, ErrNotSupported }

// Open reports ErrNotSupported.
func Open(string) (*NS, error) { return nil, ErrNotSupported }

// New reports ErrNotSupported.
func New() (*NS, error) { return nil, ErrNotSupported }

// Do reports ErrNotSupported and runs nothing.
func (n *NS) Do(func() error) error { return ErrNotSupported }

// Listen reports ErrNotSupported.
func (n *NS) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, ErrNotSupported
}

// Close reports ErrNotSupported: there is nothing to close.
func (n *NS) Close() error { return ErrNotSupported }

// PacketConn reports ErrNotSupported.
func PacketConn(*os.File) (net.PacketConn, error) { return nil, ErrNotSupported }

// ServeRefusals closes f and reports ErrNotSupported.
func ServeRefusals(_ context.Context, f *os.File, _ func(Refusal)) error {
	f.Close()
	return ErrNotSupported
}
