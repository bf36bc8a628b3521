// Package e2e drives the real launch binary from outside, as a user would and
// as an attacker would.
//
// The tests run in a world of their own: a network namespace in which every
// address of IPv4 and IPv6 is local, with canaries listening on all of them, a
// DNS server that answers any name, and a sniffer that sees every packet.
// Nothing can leave it, and whatever leaves the sandbox is seen. As root the
// same tests run twice: as root and as a throw-away uid. An ordinary user gets
// the world from a user namespace of theirs.
//
// Three tables are the heart: verdict rows (a request, and what every door
// must say to it), escape rows (an attempt, which the positive control outside
// shows to work, and what must not happen inside) and policy rows (a policy
// text, and what is wrong with it).
package e2e
