//go:build !linux

package spawn

// Pending is an init that is being started. There is none here.
type Pending struct{}

// Ahead starts nothing here: namespaces exist on Linux only.
func Ahead() *Pending { return nil }

// Discard does nothing.
func (p *Pending) Discard() {}
