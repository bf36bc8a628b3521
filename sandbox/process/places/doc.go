// Package places plans the mounts that enforce a [files.Gate]:
//
//	plan, err := places.Find(places.Machine{Gate: gate, Mounts: table, Roots: roots})
//	for _, p := range plan.Places { ... } // outermost first; see control.Place
//
// It looks at this machine's file system and decides nothing: what may be done
// with a name is the gate's answer. A mount needs something to be mounted on, so
// names that do not exist yet are for [Plan.Watch]: see package latecomers.
package places
