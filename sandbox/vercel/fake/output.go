package fake

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
	streamStdout = byte(1)
	streamStderr = byte(2)
)

// output is what a command has written so far, as records: the stream, the
// length, the text. Any number of readers follow it.
type output struct {
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

func newOutput(path string) *output { return &output{path: path, grown: make(chan struct{})} }

// add keeps text, which was written to stream.
func (o *output) add(stream byte, text []byte) {
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

func (o *output) write(rec []byte) bool {
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

// wake tells everybody who follows. o.mu is held.
func (o *output) wake() {
	close(o.grown)
	o.grown = make(chan struct{})
}

// end says that no more comes.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended = true
		o.wake()
	}
}

// enter counts a reader, for whom the output is kept until it calls leave.
func (o *output) enter() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readers++
}

func (o *output) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.readers--; o.readers == 0 && o.doomed {
		o.free()
	}
}

// release gives the memory and the file back, once nobody reads it any more.
// Who comes later gets an error.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.doomed = true; o.readers == 0 {
		o.free()
	}
}

// free is release at once. o.mu is held.
func (o *output) free() {
	o.released, o.head = true, nil
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
	o.wake()
}

var errOutputGone = errors.New("the output is not kept any more")

// read reports the record at offset at, and the offset of the next. more is
// false at the end; cut then says whether something is missing. It waits for
// what has not been written yet.
func (o *output) read(ctx context.Context, at int64) (stream byte, text []byte, next int64, more, cut bool, err error) {
	for {
		o.mu.Lock()
		grown := o.grown
		switch {
		case o.released:
			err = errOutputGone
		case at < o.size:
			stream, text, next, err = o.record(at)
			more = err == nil
		case !o.ended:
			o.mu.Unlock()
			select {
			case <-grown:
				continue
			case <-ctx.Done():
				return 0, nil, at, false, false, ctx.Err()
			}
		default:
			cut = o.cut
		}
		o.mu.Unlock()
		return stream, text, next, more, cut, err
	}
}

// record reads what add wrote. o.mu is held.
func (o *output) record(at int64) (stream byte, text []byte, next int64, err error) {
	var head [5]byte
	if err := o.readAt(head[:], at); err != nil {
		return 0, nil, at, err
	}
	text = make([]byte, binary.BigEndian.Uint32(head[1:]))
	if err := o.readAt(text, at+5); err != nil {
		return 0, nil, at, err
	}
	return head[0], text, at + 5 + int64(len(text)), nil
}

func (o *output) readAt(b []byte, at int64) error {
	if at < int64(len(o.head)) {
		copy(b, o.head[at:]) // a record never lies half in the file
		return nil
	}
	_, err := o.file.ReadAt(b, at-int64(len(o.head)))
	return err
}
