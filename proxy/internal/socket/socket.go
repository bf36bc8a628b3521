// Package socket knows what the operating system knows of connections and
// package net does not say: where a captured connection was going, which
// addresses lead back to this machine, how many descriptors are left, and the
// two ways of ending a connection that Close does not offer.
//
//	dst, err := socket.OriginalDst(c) // before capture rules redirected c
//	err := socket.HalfClose(c)        // the sending half alone
//	socket.Reset(c)                   // all of it, with a RST
//
//	var serving socket.Listeners
//	serving.Add(addr)
//	loops := serving.Reached(target, port)
//
// If the system does not answer, an address counts as this machine's own: a
// caller that refuses those fails closed. Systems other than Linux have no
// original destinations and no network namespaces.
package socket

import (
	"net"
	"net/netip"
)

type writeCloser interface{ CloseWrite() error }

// HalfClose ends the sending half of c, or all of c if it has no halves.
func HalfClose(c net.Conn) error {
	if w, ok := c.(writeCloser); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// Reset closes c with a RST.
func Reset(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // the close that follows is what counts
	}
	_ = c.Close()
}

// AddrPort reports a as a TCP address, IPv4 without its IPv6 form; zero if it is another kind of address.
func AddrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}
