// Package capture closes a fresh network namespace: it makes routes by which
// everything arrives in it, rules that redirect or refuse everything, and the
// doors' sockets:
//
//	doors, err := capture.Setup(capture.Config{}) // in the namespace, on its thread
//	defer doors.Close()
//	ln, err := net.FileListener(doors.Transparent[0])
//
// Pid 1 of every sandbox does this, and every start waits for it. A process
// starts faster without packages net and net/netip and without the encoder of
// rules, so this package imports none of them: its rules are encoded already
// (package netns/capture/rules).
package capture

import "errors"

// ErrNotSupported is returned if the platform or the kernel lacks what a call
// needs.
var ErrNotSupported = errors.New("network namespaces are not supported here")
