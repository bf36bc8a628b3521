// Package output keeps what a command writes while any number of readers follow
// it. The writer adds records and ends the log; a reader holds the log and reads
// from an offset:
//
//	log := output.New(path)
//	log.Add(output.Stdout, text)
//	log.End()
//
//	log.Enter()
//	defer log.Leave()
//	rec, err := log.Read(ctx, 0) // the next begins at rec.Next
package output

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"
)

// Bounds of what is kept of a command's output.
const (
	headBytes      = 64 << 10  // in memory; what is more goes into a file
	maxOutputBytes = 256 << 20 // beyond it, output is read and thrown away
)

// The streams of a command.
const (
	Stdout = byte(1)
	Stderr = byte(2)
)

// Log is what a command has written so far, as records of stream, length and
// text. Safe for concurrent use. The owner calls Release when it is no longer
// needed.
type Log struct {
	mu       sync.Mutex
	path     string // where the file goes
	head     []byte
	file     *os.File // without a name; nil: everything is in head
	size     int64
	cut      bool          // output was thrown away
	ended    bool          // no more comes
	grown    chan struct{} // closed and replaced when something changes
	readers  int           // that are at it
	doomed   bool          // to be given back when the last of them has gone
	released bool
}

// New returns an empty log. What exceeds the memory bound goes into a file that is
// created at path and unlinked at once; nothing may exist there.
func New(path string) *Log { return &Log{path: path, grown: make(chan struct{})} }

// Add appends text, which the command wrote to stream. After a failed write, or
// above the size limit, text is dropped and Read reports Cut at the end.
func (o *Log) Add(stream byte, text []byte) {
	rec := append([]byte{stream, 0, 0, 0, 0}, text...)
	binary.BigEndian.PutUint32(rec[1:], uint32(len(text))) // #nosec: a read's
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut || o.released {
		return
	}
	if o.size+int64(len(rec)) > maxOutputBytes || !o.write(rec) {
		o.cut = true
	}
	o.wake()
}

func (o *Log) write(rec []byte) bool {
	if o.file == nil && len(o.head)+len(rec) <= headBytes {
		o.head = append(o.head, rec...)
		o.size += int64(len(rec))
		return true
	}
	if o.file == nil {
		f, err := os.OpenFile(o.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return false
		}
		if os.Remove(o.path) != nil {
			_ = f.Close()
			return false
		}
		o.file = f
	}
	if _, err := o.file.WriteAt(rec, o.size-int64(len(o.head))); err != nil {
		return false
	}
	o.size += int64(len(rec))
	return true
}

// wake wakes all readers that wait. The caller holds o.mu.
func (o *Log) wake() {
	close(o.grown)
	o.grown = make(chan struct{})
}

// End marks the log as complete. It may be called again.
func (o *Log) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended = true
		o.wake()
	}
}

// Enter registers a reader: the log is kept until the reader calls Leave.
func (o *Log) Enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers++
}

// Leave ends what Enter began.
func (o *Log) Leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.readers--; o.readers == 0 && o.doomed {
		o.free()
	}
}

// Release frees the memory and the file when the last reader has left. Later
// reads fail.
func (o *Log) Release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.doomed = true; o.readers == 0 {
		o.free()
	}
}

// free releases at once. o.mu is held.
func (o *Log) free() {
	o.released, o.head = true, nil
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
	o.wake()
}

var errGone = errors.New("the output is not kept any more")

// Record is one write of the command.
type Record struct {
	Stream byte // Stdout or Stderr
	Text   []byte
	Next   int64 // the offset of the next record
	More   bool  // false: this is not a record but the end of the log
	Cut    bool  // at the end: output is missing
}

// Read returns the record at offset at. It waits until that record has been
// added, the log has ended, or ctx ends. It fails after Release.
func (o *Log) Read(ctx context.Context, at int64) (Record, error) {
	for {
		o.mu.Lock()
		grown := o.grown
		var rec Record
		var err error
		switch {
		case o.released:
			err = errGone
		case at < o.size:
			rec, err = o.record(at)
		case !o.ended:
			o.mu.Unlock()
			select {
			case <-grown:
				continue
			case <-ctx.Done():
				return Record{Next: at}, ctx.Err()
			}
		default:
			rec.Cut = o.cut
		}
		o.mu.Unlock()
		return rec, err
	}
}

// record decodes what Add wrote at offset at. The caller holds o.mu.
func (o *Log) record(at int64) (Record, error) {
	var head [5]byte
	if err := o.readAt(head[:], at); err != nil {
		return Record{Next: at}, err
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if err := o.readAt(text, at+5); err != nil {
		return Record{Next: at}, err
	}
	return Record{Stream: head[0], Text: text, Next: at + 5 + int64(len(text)), More: true}, nil
}

func (o *Log) readAt(b []byte, at int64) error {
	if at < int64(len(o.head)) {
		copy(b, o.head[at:]) // a record never lies half in the file
		return nil
	}
	_, err := o.file.ReadAt(b, at-int64(len(o.head)))
	return err
}
