// Package room says which limits of a policy are in force on a machine:
//
//	in, short := room.Of(files, memory).InForce(p.Limits())
package room

import (
	"cmp"
	"math"

	"egressd/policy"
)

// What one connection takes of memory at the most, in bytes, and what is for everything
// else. 9,460 connections whose clients said nothing took 28 KB each, those that carry
// bytes 10. Where TLS is opened it is 100.
const (
	connectionBytes = 32 << 10
	otherBytes      = 32 << 20
	least           = 64 // connections, however little memory there is
)

// Room is what a machine leaves room for, in connections. Zero: any number.
type Room struct {
	Files  int // by the limit on open files. No limit of a policy can be above it
	Memory int // by the limit on memory. It bounds the default; what a policy names stands
}

// Of is the room of a process that has descriptors for so many connections, and this
// limit on its memory, in bytes. Zero: none is known.
func Of(files int, memory int64) Room {
	r := Room{Files: files}
	if memory > 0 {
		r.Memory = int(min(max((memory-otherBytes)/connectionBytes, least), math.MaxInt32))
	}
	return r
}

// InForce reports every limit as it is in force where there is this room: with defaults
// filled in, and one client's half of the connections at most where named names neither
// number. short names what leaves room for no more connections; "": nothing does.
func (r Room) InForce(named policy.Limits) (in policy.Limits, short string) {
	d := policy.DefaultLimits()
	in = policy.Limits{
		Connections:          cmp.Or(named.Connections, d.Connections),
		ConnectionsPerClient: cmp.Or(named.ConnectionsPerClient, d.ConnectionsPerClient),
		RatePerSecond:        cmp.Or(named.RatePerSecond, d.RatePerSecond),
		BytesPerFlow:         cmp.Or(named.BytesPerFlow, d.BytesPerFlow),
		MaxDurationSeconds:   cmp.Or(named.MaxDurationSeconds, d.MaxDurationSeconds),
		IdleTimeoutSeconds:   cmp.Or(named.IdleTimeoutSeconds, d.IdleTimeoutSeconds),
		HeadBytes:            cmp.Or(named.HeadBytes, d.HeadBytes),
		HelloBytes:           cmp.Or(named.HelloBytes, d.HelloBytes),
		HeadTimeoutSeconds:   cmp.Or(named.HeadTimeoutSeconds, d.HeadTimeoutSeconds),
		HelloTimeoutSeconds:  cmp.Or(named.HelloTimeoutSeconds, d.HelloTimeoutSeconds),
	}
	in.RatePerClient = cmp.Or(named.RatePerClient, in.RatePerSecond)
	if r.Memory > 0 && named.Connections == 0 && r.Memory < in.Connections {
		in.Connections, short = r.Memory, "the limit on memory"
	}
	if r.Files > 0 && r.Files < in.Connections {
		in.Connections, short = r.Files, "the limit on open files"
	}
	if named.ConnectionsPerClient == 0 && named.Connections == 0 {
		in.ConnectionsPerClient = max(1, in.Connections/2)
	}
	in.ConnectionsPerClient = min(in.ConnectionsPerClient, in.Connections)
	return in, short
}
