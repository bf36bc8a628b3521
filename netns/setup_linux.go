package netns

import (
	"context"
	"net"
	"os"
)

// Setup prepares the calling thread's network namespace for capture. It needs
// CAP_NET_ADMIN and CAP_NET_BIND_SERVICE over that namespace, and is meant for
// a namespace that was made for this: it is called once, before anything else
// runs there.
func Setup(c Capture) (*Doors, error) { return nil, ErrNotSupported }

// ListenLoopback listens at port on 127.0.0.1 and, where the kernel has IPv6,
// on ::1, in the calling thread's namespace.
func ListenLoopback(port uint16) ([]*os.File, error) { return nil, ErrNotSupported }

// PacketConn wraps a UDP socket of Doors so that a reply leaves from the
// address that was asked. Replies must be written to the very net.Addr that
// ReadFrom reported. It duplicates f; the caller still closes f.
func PacketConn(f *os.File) (net.PacketConn, error) { return nil, ErrNotSupported }

// ServeRefusals reports each refused packet read from f (Doors.Refusals) to fn
// until ctx ends. It closes f.
func ServeRefusals(ctx context.Context, f *os.File, fn func(Refusal)) error { return ErrNotSupported }
