package ipc

import (
	"slices"
	"syscall"
	"testing"
)

type order struct {
	words []string
	ports []uint16
	raw   []byte
	name  *string
	exit  int
	flag  bool
	kind  byte
	sig   syscall.Signal
	errno syscall.Errno
}

func (o *order) code(c *Coder) {
	c.Texts(&o.words)
	c.Ports(&o.ports)
	c.Bytes(&o.raw)
	Optional(c, &o.name, c.Text)
	c.Int(&o.exit)
	c.Bool(&o.flag)
	c.Byte(&o.kind)
	c.Signal(&o.sig)
	c.Errno(&o.errno)
}

type stop struct{}

func (*stop) code(*Coder) {}

type message struct {
	order *order
	stop  *stop
}

func (m *message) code(c *Coder) {
	c.OneOf(Choice(1, &m.order, (*order).code), Choice(2, &m.stop, (*stop).code))
}

func TestRoundTrip(t *testing.T) {
	name := "n\x00"
	sent := order{[]string{"", "a"}, []uint16{65535}, []byte{0}, &name, -1, true, 'x', syscall.SIGTERM, syscall.EPERM}
	b, err := Encode([]byte("before"), (&message{order: &sent}).code)
	if err != nil || string(b[:6]) != "before" {
		t.Fatalf("%q, %v", b, err)
	}
	var m message
	if err := Decode(b[6:], m.code); err != nil || m.stop != nil || m.order == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	got := *m.order
	if !slices.Equal(got.words, sent.words) || !slices.Equal(got.ports, sent.ports) || !slices.Equal(got.raw, sent.raw) || *got.name != name {
		t.Errorf("%+v", got)
	}
	got.words, got.ports, got.raw, got.name = nil, nil, nil, nil
	if got.exit != -1 || !got.flag || got.kind != 'x' || got.sig != sent.sig || got.errno != sent.errno {
		t.Errorf("%+v", got)
	}
}

// What was nothing stays nothing: nil is not an empty list afterwards, nor the
// other way round.
func TestNothingArrivesAsNil(t *testing.T) {
	b, err := Encode(nil, (&order{words: []string{}, raw: []byte{}}).code)
	if err != nil {
		t.Fatal(err)
	}
	var got order
	if err := Decode(b, got.code); err != nil || got.words != nil || got.raw != nil || got.name != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// A message is of one kind, and of one that both sides know.
func TestOneOf(t *testing.T) {
	for name, m := range map[string]message{"none": {}, "two": {order: &order{}, stop: &stop{}}} {
		if b, err := Encode(nil, m.code); err == nil {
			t.Errorf("%s: %q", name, b)
		}
	}
	for _, b := range []string{"", "\x00", "\x03", "\x02\x00", "\x01"} {
		var m message
		if err := Decode([]byte(b), m.code); err == nil {
			t.Errorf("%q is %+v", b, m)
		}
	}
	var m message
	if err := Decode([]byte{2}, m.code); err != nil || m.stop == nil {
		t.Errorf("%+v, %v", m, err)
	}
}

// Lengths are checked against what is there, before there is memory for them.
func TestLengthsThatLie(t *testing.T) {
	huge := "\x00\x00\x00\x7f\xff\xff\xff\xff"
	for name, code := range map[string]func(*Coder){
		"text":  func(c *Coder) { c.Text(new(string)) },
		"bytes": func(c *Coder) { c.Bytes(new([]byte)) },
		"list":  func(c *Coder) { c.Texts(new([]string)) },
		"flag":  func(c *Coder) { c.Bool(new(bool)) },
	} {
		if n := testing.AllocsPerRun(1, func() {
			if err := Decode([]byte(huge), code); err == nil {
				t.Errorf("%s: no error", name)
			}
		}); n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
