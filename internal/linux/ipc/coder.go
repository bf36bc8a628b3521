// Package ipc carries messages and file descriptors between a supervisor and
// the confined process that it started from the same executable. Each side
// names the fields of a message once, for writing and for reading:
//
//	type Message struct {
//		Start *Start // exactly one field is set
//		Ended *Ended
//	}
//
//	func (m *Message) code(c *ipc.Coder) {
//		c.OneOf(ipc.Choice(1, &m.Start, (*Start).code), ipc.Choice(2, &m.Ended, (*Ended).code))
//	}
//
//	func (m *Start) code(c *ipc.Coder) { c.Texts(&m.Argv); c.Bool(&m.ReadOnly) }
//
//	conn := ipc.Conn{FD: fd, SendBytes: 1 << 20, ReceiveBytes: 1 << 20}
//	err := conn.Send(sent.code, file.Fd())
//	files, err := conn.Receive(received.code)
//
// On the wire numbers are eight bytes, and text and lists stand behind their
// length. There are no versions. Whatever is read is judged as if a stranger
// had sent it: lengths are checked against what is there, and nothing may
// follow.
//
// Pid 1 of every run starts with this package and is waited for, so it keeps to
// what starts fast: no reflection, no poller. encoding/json would cost a
// millisecond.
package ipc

import (
	"encoding/binary"
	"errors"
	"syscall"
)

var (
	errShort   = errors.New("control message: cut short")
	errGarbage = errors.New("control message: not one of ours")
	errEmpty   = errors.New("control message: not exactly one of its kinds")
)

// Encode appends to b the wire form of the value whose fields code names.
func Encode(b []byte, code func(*Coder)) ([]byte, error) {
	c := Coder{b: b}
	code(&c)
	return c.b, c.err
}

// Decode reads what takes up all of b into the zero value whose fields code
// names.
func Decode(b []byte, code func(*Coder)) error {
	c := Coder{b: b, read: true}
	code(&c)
	if c.err == nil && len(c.b) > 0 {
		return errGarbage
	}
	return c.err
}

// Coder writes values, or reads them. After an error it does nothing more, and
// Encode or Decode reports the error.
type Coder struct {
	b    []byte
	read bool
	err  error
}

func (c *Coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

// Number codes v and returns it, or what was read instead.
func (c *Coder) Number(v uint64) uint64 {
	if !c.read {
		c.b = binary.BigEndian.AppendUint64(c.b, v)
		return v
	}
	if len(c.b) < 8 {
		c.fail(errShort)
		return 0
	}
	v, c.b = binary.BigEndian.Uint64(c.b), c.b[8:]
	return v
}

// Uint64 codes a number.
func (c *Coder) Uint64(v *uint64) { *v = c.Number(*v) }

// Int codes a number that may be negative.
func (c *Coder) Int(v *int) { *v = int(c.Number(uint64(*v))) }

// Port codes a port.
func (c *Coder) Port(v *uint16) { *v = uint16(c.Number(uint64(*v))) }

// Signal codes a signal.
func (c *Coder) Signal(v *syscall.Signal) { *v = syscall.Signal(c.Number(uint64(*v))) }

// Errno codes an error number.
func (c *Coder) Errno(v *syscall.Errno) { *v = syscall.Errno(c.Number(uint64(*v))) }

// Bool codes yes or no.
func (c *Coder) Bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	switch c.Number(n) {
	case 0:
		*v = false
	case 1:
		*v = true
	default:
		c.fail(errGarbage)
	}
}

// Byte codes one byte.
func (c *Coder) Byte(v *byte) {
	if !c.read {
		c.b = append(c.b, *v)
		return
	}
	if len(c.b) == 0 {
		c.fail(errShort)
		return
	}
	*v, c.b = c.b[0], c.b[1:]
}

// length codes how many elements follow, of a byte each at least.
func (c *Coder) length(n int) int {
	v := c.Number(uint64(n))
	if c.read && v > uint64(len(c.b)) {
		c.fail(errShort)
		return 0
	}
	return int(v) // #nosec: not above a length
}

// Text codes a string.
func (c *Coder) Text(v *string) {
	n := c.length(len(*v))
	if !c.read {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = string(c.b[:n]), c.b[n:]
}

// Bytes codes bytes. None arrive as nil.
func (c *Coder) Bytes(v *[]byte) {
	n := c.length(len(*v))
	if !c.read {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = append([]byte(nil), c.b[:n]...), c.b[n:]
}

// Texts codes strings. None arrive as nil.
func (c *Coder) Texts(v *[]string) { List(c, v, c.Text) }

// Ports codes ports. None arrive as nil.
func (c *Coder) Ports(v *[]uint16) { List(c, v, c.Port) }

// List codes a slice by coding each element with one, which must write at least
// a byte. An empty list arrives as nil.
func List[T any](c *Coder, v *[]T, one func(*T)) {
	n := c.length(len(*v))
	if c.read && n > 0 {
		*v = make([]T, 0, min(n, 1024))
	}
	for i := 0; i < n && c.err == nil; i++ {
		if c.read {
			var zero T
			*v = append(*v, zero)
		}
		one(&(*v)[i])
	}
}

// Optional codes what v points to with one, and whether there is anything. Nil
// arrives as nil.
func Optional[T any](c *Coder, v **T, one func(*T)) {
	has := *v != nil
	c.Bool(&has)
	if !has {
		return
	}
	if c.read {
		*v = new(T)
	}
	one(*v)
}

// Option is one of the kinds that a message may be. Choice makes it.
type Option struct {
	number byte
	set    bool // the message is of this kind
	code   func(*Coder)
}

// Choice is the kind of that number: v points to it if the message is of that
// kind, and code names its fields. Numbers start at 1.
func Choice[T any](number byte, v **T, code func(*T, *Coder)) Option {
	return Option{number: number, set: *v != nil, code: func(c *Coder) {
		if *v == nil {
			*v = new(T)
		}
		code(*v, c)
	}}
}

// OneOf codes a message that is exactly one of kinds.
func (c *Coder) OneOf(kinds ...Option) {
	if c.read {
		var number byte
		c.Byte(&number)
		for _, k := range kinds {
			if c.err == nil && k.number == number {
				k.code(c)
				return
			}
		}
		c.fail(errGarbage)
		return
	}
	var chosen *Option
	for i := range kinds {
		if !kinds[i].set {
			continue
		}
		if chosen != nil {
			c.fail(errEmpty)
			return
		}
		chosen = &kinds[i]
	}
	if chosen == nil {
		c.fail(errEmpty)
		return
	}
	c.Byte(&chosen.number)
	chosen.code(c)
}
