// Package netns holds what egressd does to network namespaces: opening and
// entering them, giving one an address and routes, capturing everything that
// tries to leave it, and the listeners inside.
//
// Nothing here decides who may talk to whom. A namespace prepared by Setup has
// no way out at all; what arrives at its doors is judged elsewhere.
package netns

import "egressd/netns/capture"

// ErrNotSupported is returned where the platform or the kernel lacks what a
// call needs.
var ErrNotSupported = capture.ErrNotSupported
