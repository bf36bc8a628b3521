package netlink

import (
	"bytes"
	"testing"
)

// What is written is read again: kinds without their flags, data without its
// padding.
func TestAppendParse(t *testing.T) {
	b := Append(nil,
		Text(1, "lo"), // three bytes: one of padding
		Number(2, 0x01020304),
		Nest(3, Attr{Kind: 7, Data: []byte{9}}, Text(8, "x")),
		Attr{Kind: 4},
	)
	if len(b)%attrAlign != 0 {
		t.Errorf("%d bytes: the next attribute would be misread", len(b))
	}
	attrs, err := Parse(b)
	if err != nil || len(attrs) != 4 {
		t.Fatalf("%v, %v", attrs, err)
	}
	if got := Find(attrs, 1); string(got) != "lo\x00" {
		t.Errorf("text: %q", got)
	}
	if got := Find(attrs, 2); !bytes.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("number: % x", got)
	}
	inner, err := Parse(Find(attrs, 3))
	if err != nil || string(Find(inner, 7)) != "\x09" || string(Find(inner, 8)) != "x\x00" {
		t.Errorf("nested: %v, %v", inner, err)
	}
	if got := Find(attrs, 5); got != nil {
		t.Errorf("an attribute that is not there: %q", got)
	}
}

// A list that is cut short gives what came before the cut, and says so.
func TestParseCutShort(t *testing.T) {
	whole := Append(nil, Number(1, 1), Text(2, "long enough"))
	attrs, err := Parse(whole[:len(whole)-4])
	if err == nil || len(attrs) != 1 || attrs[0].Kind != 1 {
		t.Errorf("%v, %v", attrs, err)
	}
}

// The kernel writes lists, and programs inside the packets in them: neither may
// crash a reader or make it loop.
func FuzzParse(f *testing.F) {
	f.Add(Append(nil, Nest(1, Text(2, "x")), Number(3, 4)))
	f.Add([]byte{4, 0, 1, 0, 3, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		attrs, err := Parse(b)
		size := 0
		for _, a := range attrs {
			size += attrHeader + len(a.Data)
		}
		if size > len(b) || err == nil && len(b) >= attrHeader && len(attrs) == 0 {
			t.Errorf("%d attributes of %d bytes in %d, %v", len(attrs), size, len(b), err)
		}
	})
}
