// Package inside is what runs as pid 1 of a sandbox: it builds the walls from
// within, hands the doors' sockets out, throws every privilege away, starts the
// harness and waits for it.
package inside
