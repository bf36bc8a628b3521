// Package admin is the daemon's own small HTTP server, for probes and
// scrapers: /healthz, /readyz and /metrics, read-only. It says nothing about
// flows, changes nothing, and must not be reachable by clients of the gate.
package admin
