// Package clients holds tests only: real, unmodified clients (curl, git, pip,
// npm, a browser, coding agents, ...) run through the real launch binary
// against origins on loopback. Each runs with the proxy variables that launch
// sets, without any, and towards a host that no rule names.
//
// The tests have the build tag system: they need programs that a bare machine
// lacks, and install the agents from npm. A client that is not installed is
// skipped with the reason. The tests need a network namespace of their own, so
// that the usual ports are free for root and for an ordinary user alike; they
// touch nothing outside it.
package clients
