//go:build !linux

package mmsg

import (
	"errors"
	"net/netip"
	"syscall"
)

// Elsewhere there is no such system call: Open fails, and nothing else can be called.

// Socket is a UDP socket.
type Socket struct{}

// Batch is room for packets and their replies.
type Batch struct{}

// Return is the way back to one client.
type Return struct{}

// Open always fails here.
func Open(syscall.Conn) (*Socket, error) { return nil, errors.ErrUnsupported }

// NewBatch makes nothing here.
func NewBatch() *Batch { return nil }

// Packet is nothing here.
func (*Batch) Packet(int) []byte { return nil }

// Buffer is nothing here.
func (*Batch) Buffer(int) []byte { return nil }

// SetReply does nothing here.
func (*Batch) SetReply(int, []byte) {}

// Client is nobody here.
func (*Batch) Client(int) netip.AddrPort { return netip.AddrPort{} }

// Return leads nowhere here.
func (*Batch) Return(int) Return { return Return{} }

// Read always fails here.
func (*Socket) Read(*Batch) (int, error) { return 0, errors.ErrUnsupported }

// Write does nothing here.
func (*Socket) Write(*Batch) {}

// Send does nothing here.
func (*Socket) Send(*Return, []byte) {}

// SetReturn does nothing here.
func (*Batch) SetReturn(int, *Return) {}

// Empty does nothing here.
func (*Batch) Empty() {}

// Conn is a UDP socket that is connected to one peer.
type Conn struct{}

// Connected always fails here.
func Connected(syscall.Conn) (*Conn, error) { return nil, errors.ErrUnsupported }

// Box is room for packets that were read from a Conn.
type Box struct{}

// Len is zero here.
func (*Box) Len() int { return 0 }

// Packet is nothing here.
func (*Box) Packet(int) []byte { return nil }

// Boxes keeps none here.
type Boxes struct{}

// Put does nothing here.
func (*Boxes) Put(*Box) {}

// Read always fails here.
func (*Conn) Read(*Boxes) (*Box, error) { return nil, errors.ErrUnsupported }

// Write always fails here.
func (*Conn) Write([][]byte) error { return errors.ErrUnsupported }
