// Package capture shuts a fresh network namespace: devices and routes by which
// everything arrives in it, rules that redirect or refuse everything, and the
// doors' sockets.
//
// It is apart from netns because pid 1 of every sandbox does this, and is
// waited for: a process starts faster without packages net, netip and those
// that encode netlink, so this one imports none of them.
package capture

import "errors"

// ErrNotSupported is returned where the platform or the kernel lacks what a
// call needs.
var ErrNotSupported = errors.New("network namespaces are not supported here")
