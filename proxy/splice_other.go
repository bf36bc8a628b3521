//go:build !linux

package proxy

import "net"

// pipes are Linux's: elsewhere there is nothing to pool.
type pipes struct{}

func (*pipes) drain() {}

// direction is what between prepares.
type direction struct{}

func (*direction) carry() error { return nil }

// between prepares nothing: this system has no splice.
func (e *engine) between(net.Conn, net.Conn, func(int64) bool) *direction { return nil }
