//go:build !linux

package relay

// pipes are Linux's: elsewhere there is nothing to pool.
type pipes struct{}

func (*pipes) drain() {}

// direction is what between prepares.
type direction struct{}

func (*direction) carry() error { return nil }

// between prepares nothing: this system has no splice.
func (*Goroutines) between(Way) *direction { return nil }
