// Package accept says which errors of a listener pass. Servers that accept
// clients for as long as they run use it:
//
//	c, err := ln.Accept()
//	if accept.Passes(err) {
//		continue // after a pause
//	}
package accept

import (
	"errors"
	"syscall"
)

// Passes reports whether a listener fails for a while only: the process or the
// system has no descriptors or no memory left, a firewall rule refused this
// connection (EPERM), or the client was gone before it was accepted.
//
// Threat: a client uses up the descriptors of the process, so that a door gives
// up for good and everybody's connections or names with it -> these errors are
// waited out, however long they last. Left over: nobody is served meanwhile.
func Passes(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
