//go:build !linux

package proxy

import (
	"errors"
	"net"
)

// pipes is empty where there is no splice(2).
type pipes struct{}

func (*pipes) drain() {}

// transferRaw is Linux's: elsewhere flows are copied through a pooled buffer.
func (*engine) transferRaw(_, _ net.Conn, _ func(int64) bool) error { return errors.ErrUnsupported }
