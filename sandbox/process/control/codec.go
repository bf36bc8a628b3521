package control

import (
	"encoding/binary"
	"errors"
	"syscall"
)

// On the wire a message is one byte that says which it is, then its fields in
// the order in which the code methods name them: numbers as eight bytes, text
// and lists behind their length. Both ends are the same executable, so there
// are no versions. encoding/json would cost the init's start a millisecond.

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

func (c *coder) int(v *int)               { *v = int(c.number(uint64(*v))) }
func (c *coder) port(v *uint16)           { *v = uint16(c.number(uint64(*v))) }
func (c *coder) signal(v *syscall.Signal) { *v = syscall.Signal(c.number(uint64(*v))) }

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
	s := string(*v)
	c.text(&s)
	if c.read && s != "" {
		*v = []byte(s)
	}
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
func (c *coder) ports(v *[]uint16) { list(c, v, c.port) }

func (c *coder) bind(b *Bind) {
	c.text(&b.Path)
	c.text(&b.Source)
	c.bool(&b.Dir)
	c.bool(&b.ReadOnly)
}

// coded is a part of a message.
type coded interface{ code(c *coder) }

func (m *GoAhead) code(c *coder)     { c.texts(&m.Env) }
func (m *ResumeOrder) code(c *coder) { c.bool(&m.Foreground) }
func (m *StopReport) code(c *coder)  { c.signal(&m.Sig) }

func (m *SignalOrder) code(c *coder) {
	c.signal(&m.Sig)
	c.bool(&m.All)
}

func (m *DialOrder) code(c *coder) {
	m.ID = c.number(m.ID)
	c.port(&m.Port)
}

func (m *DialOutcome) code(c *coder) {
	m.ID = c.number(m.ID)
	c.text(&m.Err)
}

func (m *DoorsReady) code(c *coder) {
	c.text(&m.Mode)
	c.port(&m.ProxyPort)
	c.int(&m.Transparent)
	c.bool(&m.Refusals)
	c.ports(&m.Localhost)
	c.texts(&m.Notes)
}

func (m *ExitReport) code(c *coder) {
	c.int(&m.Code)
	c.signal(&m.Signal)
	c.bool(&m.NotRun)
}

func (m *FailReport) code(c *coder) {
	c.text(&m.Step)
	c.text(&m.Err)
	m.Errno = syscall.Errno(c.number(uint64(m.Errno)))
}

func (m *Config) code(c *coder) {
	c.texts(&m.Argv)
	c.text(&m.Path)
	c.text(&m.Dir)
	c.text(&m.TmpDir)
	c.text(&m.RuntimeDir)
	c.text(&m.Capture.Mode)
	c.ports(&m.Capture.Ports)
	c.ports(&m.Capture.Reserved)
	c.ports(&m.Localhost)
	m.Plan.code(c)
	list(c, &m.Protect, func(g *Guarded) {
		c.text(&g.File)
		c.texts(&g.Names)
	})
	c.bool(&m.ReadOnly)
	c.bytes(&m.CA)
	c.bool(&m.Foreground)
	c.int(&m.Processes)
	c.bool(&m.Nested)
	c.texts(&m.Skip)
}

func (m *Plan) code(c *coder) {
	c.texts(&m.Roots)
	list(c, &m.Binds, c.bind)
	list(c, &m.Shown, c.bind)
	c.texts(&m.Masks)
	c.text(&m.Own)
	c.text(&m.Resolv)
	has := m.Hosts != nil
	c.bool(&has)
	if has {
		if c.read {
			m.Hosts = new(string)
		}
		c.text(m.Hosts)
	}
}

func (m *HandOver) code(c *coder) {
	m.Config.code(c)
	c.texts(&m.Env)
}

// chosen reports the field that is set, and its number.
func (m *Message) chosen() (byte, coded) {
	switch {
	case m.Config != nil:
		return 1, m.Config
	case m.Go != nil:
		return 2, m.Go
	case m.Signal != nil:
		return 3, m.Signal
	case m.Resume != nil:
		return 4, m.Resume
	case m.Dial != nil:
		return 5, m.Dial
	case m.Doors != nil:
		return 6, m.Doors
	case m.Stopped != nil:
		return 7, m.Stopped
	case m.Exited != nil:
		return 8, m.Exited
	case m.Failed != nil:
		return 9, m.Failed
	case m.Dialled != nil:
		return 10, m.Dialled
	}
	return 0, nil
}

// choose makes the field of number n; nil when there is no such number.
func (m *Message) choose(n byte) coded {
	switch n {
	case 1:
		m.Config = new(Config)
		return m.Config
	case 2:
		m.Go = new(GoAhead)
		return m.Go
	case 3:
		m.Signal = new(SignalOrder)
		return m.Signal
	case 4:
		m.Resume = new(ResumeOrder)
		return m.Resume
	case 5:
		m.Dial = new(DialOrder)
		return m.Dial
	case 6:
		m.Doors = new(DoorsReady)
		return m.Doors
	case 7:
		m.Stopped = new(StopReport)
		return m.Stopped
	case 8:
		m.Exited = new(ExitReport)
		return m.Exited
	case 9:
		m.Failed = new(FailReport)
		return m.Failed
	case 10:
		m.Dialled = new(DialOutcome)
		return m.Dialled
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
	return m, decodeAll(b[1:], part)
}

func decodeAll(b []byte, v coded) error {
	c := coder{b: b, read: true}
	v.code(&c)
	if c.err == nil && len(c.b) > 0 {
		return errGarbage
	}
	return c.err
}

// Encode is h's wire form.
func (h *HandOver) Encode() []byte {
	var c coder
	h.code(&c)
	return c.b
}

// Decode reads what Encode wrote.
func (h *HandOver) Decode(b []byte) error { return decodeAll(b, h) }
