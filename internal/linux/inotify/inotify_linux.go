// Package inotify takes apart what the kernel writes about watched files:
//
//	n, err := unix.Read(fd, buf)
//	...
//	for e := range inotify.Events(buf[:n]) {
//		seen[e.Name] = true
//	}
package inotify

import (
	"bytes"
	"encoding/binary"
	"iter"

	"golang.org/x/sys/unix"
)

// Event is one event of inotify(7).
type Event struct {
	WD   int    // the watch; -1 when the queue ran over
	Mask uint32 // unix.IN_...
	Name []byte // in a watched directory; empty: the watched file itself. Part of the buffer
}

// Events are the events in b, as read from the descriptor. A piece of an event at
// the end of b, which the kernel never writes, ends them.
func Events(b []byte) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for len(b) >= unix.SizeofInotifyEvent {
			size := int(binary.NativeEndian.Uint32(b[12:]))
			rest := b[unix.SizeofInotifyEvent:]
			if size > len(rest) {
				return
			}
			name, _, _ := bytes.Cut(rest[:size], []byte{0}) // padded with zeros
			wd := int(int32(binary.NativeEndian.Uint32(b))) // #nosec: an int of the kernel's
			if !yield(Event{WD: wd, Mask: binary.NativeEndian.Uint32(b[4:]), Name: name}) {
				return
			}
			b = rest[size:]
		}
	}
}
