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
