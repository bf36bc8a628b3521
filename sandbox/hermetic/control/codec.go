package control

import (
	"encoding/binary"
	"errors"
	"syscall"
)

// On the wire a message is one byte that says which it is, then its fields in
// the order in which the code methods name them: numbers as eight bytes, text
// and lists behind their length. Both ends are the same executable, so there
// are no versions. What the worker sends is judged as if a stranger sent it:
// lengths are checked against what is there, and nothing may follow.

var (
	errShort   = errors.New("control message: cut short")
	errGarbage = errors.New("control message: not one of ours")
)

// coder writes values to b, or reads them from it: each type names its fields
// once for both.
type coder struct {
	b    []byte
	read bool
	err  error
}

func (c *coder) number(v uint64) uint64 {
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

func (c *coder) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

// length codes how many elements follow, of a byte each at least.
func (c *coder) length(n int) int {
	v := c.number(uint64(n))
	if c.read && v > uint64(len(c.b)) {
		c.fail(errShort)
		return 0
	}
	return int(v) // #nosec: not above a length
}

func (c *coder) int(v *int) { *v = int(c.number(uint64(*v))) }

func (c *coder) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	switch c.number(n) {
	case 0:
		*v = false
	case 1:
		*v = true
	default:
		c.fail(errGarbage)
	}
}

func (c *coder) text(v *string) {
	n := c.length(len(*v))
	if !c.read {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = string(c.b[:n]), c.b[n:]
}

func (c *coder) bytes(v *[]byte) {
	n := c.length(len(*v))
	if !c.read {
		c.b = append(c.b, *v...)
		return
	}
	*v, c.b = append([]byte(nil), c.b[:n]...), c.b[n:]
}

func (c *coder) letter(v *byte) {
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

// list codes a slice; an empty one arrives as nil.
func list[T any](c *coder, v *[]T, one func(*T)) {
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

func (c *coder) texts(v *[]string) { list(c, v, c.text) }

// coded is a part of a message.
type coded interface{ code(c *coder) }

func (m *Walls) code(c *coder) {
	m.Data, m.Address, m.File = c.number(m.Data), c.number(m.Address), c.number(m.File)
	m.Files, m.CPU = c.number(m.Files), c.number(m.CPU)
	c.texts(&m.Skip)
}

func (m *Start) code(c *coder) {
	c.text(&m.Script)
	c.text(&m.Name)
	c.texts(&m.Args)
	c.texts(&m.Options)
	c.text(&m.Dir)
	c.texts(&m.Env)
	for _, f := range m.Limits.Fields() {
		*f.Value = int64(c.number(uint64(*f.Value)))
	}
	c.bool(&m.Overlay)
	c.texts(&m.Protect)
	c.bool(&m.Network)
	c.bytes(&m.Roots)
}

func (m *StopOrder) code(*coder) {}

func (m *DialOrder) code(c *coder) { m.ID = c.number(m.ID) }

func (m *DialOutcome) code(c *coder) {
	m.ID = c.number(m.ID)
	c.text(&m.Err)
}

func (m *EndReport) code(c *coder) {
	c.int(&m.Code)
	c.text(&m.Limit)
	list(c, &m.Changes, func(ch *Change) {
		c.letter(&ch.Kind)
		c.text(&ch.Path)
	})
	c.int(&m.Total)
}

func (m *FailReport) code(c *coder) {
	c.text(&m.Step)
	c.text(&m.Err)
	m.Errno = syscall.Errno(c.number(uint64(m.Errno)))
}

// chosen reports the field that is set, and its number.
func (m *Message) chosen() (byte, coded) {
	switch {
	case m.Walls != nil:
		return 1, m.Walls
	case m.Start != nil:
		return 2, m.Start
	case m.Stop != nil:
		return 3, m.Stop
	case m.Dialled != nil:
		return 4, m.Dialled
	case m.Dial != nil:
		return 5, m.Dial
	case m.Ended != nil:
		return 6, m.Ended
	case m.Failed != nil:
		return 7, m.Failed
	}
	return 0, nil
}

// choose makes the field of number n; nil when there is no such number.
func (m *Message) choose(n byte) coded {
	switch n {
	case 1:
		m.Walls = new(Walls)
		return m.Walls
	case 2:
		m.Start = new(Start)
		return m.Start
	case 3:
		m.Stop = new(StopOrder)
		return m.Stop
	case 4:
		m.Dialled = new(DialOutcome)
		return m.Dialled
	case 5:
		m.Dial = new(DialOrder)
		return m.Dial
	case 6:
		m.Ended = new(EndReport)
		return m.Ended
	case 7:
		m.Failed = new(FailReport)
		return m.Failed
	}
	return nil
}

// encode appends m's wire form to b.
func (m Message) encode(b []byte) ([]byte, error) {
	n, part := m.chosen()
	if part == nil {
		return nil, errors.New("control message: empty")
	}
	c := coder{b: append(b, n)}
	part.code(&c)
	return c.b, nil
}

// decode reads a message that takes up all of b.
func decode(b []byte) (m Message, err error) {
	if len(b) == 0 {
		return m, errShort
	}
	part := m.choose(b[0])
	if part == nil {
		return m, errGarbage
	}
	c := coder{b: b[1:], read: true}
	part.code(&c)
	if c.err == nil && len(c.b) > 0 {
		return m, errGarbage
	}
	return m, c.err
}
