// Package netns opens and enters network namespaces, and serves a captured one:
//
//	ns, err := netns.Open("/proc/1234/ns/net")
//	defer ns.Close()
//	ln, err := ns.Listen(ctx, "tcp", "127.0.0.1:3128")
//	err = ns.Do(func() error { return rules.Verify() }) // anything, on a thread inside
//
//	pc, err := netns.PacketConn(doors.DNSUDP)              // replies from the address that was asked
//	err = netns.ServeRefusals(ctx, doors.Refusals, report) // what the rules refused
//
// Package capture captures a namespace of a sandbox and opens its doors; package
// pod captures one that has a network. Nothing here decides who may talk to whom.
package netns

import "egressd/netns/capture"

// ErrNotSupported is returned if the platform or the kernel lacks what a call
// needs.
var ErrNotSupported = capture.ErrNotSupported
