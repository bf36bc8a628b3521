package control

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"egressd/internal/linux/ipc"
)

// fill gives every field below v a value that is not its zero.
func fill(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case reflect.String:
		v.SetString(string(rune('a'+*n%26)) + "\x00\xff")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(*n))
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// messages is one of each, every field set.
func messages(t *testing.T) []Message {
	var all []Message
	n := 0
	for i := range reflect.TypeFor[Message]().NumField() {
		var m Message
		fill(t, reflect.ValueOf(&m).Elem().Field(i), &n)
		all = append(all, m)
	}
	return all
}

// A field that a code method forgets would not arrive.
func TestEveryFieldArrives(t *testing.T) {
	for _, m := range messages(t) {
		b, err := ipc.Encode(nil, m.code)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(b)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if d := cmp.Diff(m, got); d != "" {
			t.Error(d)
		}
	}
	var h, got HandOver
	n := 0
	fill(t, reflect.ValueOf(&h).Elem(), &n)
	b, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Decode(b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, got); d != "" {
		t.Error(d)
	}
}

func TestNotAMessage(t *testing.T) {
	if _, err := ipc.Encode(nil, new(Message).code); err == nil {
		t.Error("an empty message was encoded")
	}
	whole, err := ipc.Encode(nil, (&Message{Config: &Config{Argv: []string{"a", "b"}}}).code)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := decode(whole[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
	for _, b := range [][]byte{append(bytes.Clone(whole), 0), {0}, {255}, append([]byte{1}, bytes.Repeat([]byte{0xff}, 64)...), {4, 0, 0, 0, 0, 0, 0, 0, 2}} {
		if m, err := decode(b); err == nil {
			t.Errorf("%x was taken for %+v", b, m)
		}
	}
}

// Whatever is accepted is written again as it came.
func FuzzDecode(f *testing.F) {
	var t testing.T
	for _, m := range messages(&t) {
		b, err := ipc.Encode(nil, m.code)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again, err := ipc.Encode(nil, m.code)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(again)
		if err != nil || !cmp.Equal(m, back) {
			t.Fatalf("%+v became %+v (%v)", m, back, err)
		}
	})
}

func decode(b []byte) (m Message, err error) {
	err = ipc.Decode(b, m.code)
	return m, err
}
