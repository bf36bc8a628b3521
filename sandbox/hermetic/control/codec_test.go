package control

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"egressd/internal/linux/ipc"
)

// fill gives every field below v a value that is not its zero.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
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
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(*n % 256))
	default:
		t.Fatalf("a field of kind %v", v.Kind())
	}
}

// messages is one of each, every field set.
func messages(t *testing.T) []Message {
	t.Helper()
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
		if diff := cmp.Diff(m, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := ipc.Encode(nil, new(Message).code); err == nil {
		t.Error("nothing can be said")
	}
}

// What is cut short, too long or not ours is an error and takes no memory.
func TestGarbage(t *testing.T) {
	for _, m := range messages(t) {
		b, err := ipc.Encode(nil, m.code)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if _, err := decode(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are a message", n, len(b))
			}
		}
		if _, err := decode(append(b, 0)); err == nil {
			t.Error("something may follow a message")
		}
	}
	for _, b := range [][]byte{nil, {0}, {99}, {6, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}} {
		if _, err := decode(b); err == nil {
			t.Errorf("%v is a message", b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{6, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again, err := ipc.Encode(nil, m.code)
		if err != nil {
			t.Fatal(err)
		}
		if len(again) != len(b) {
			t.Fatalf("%q was said as %q", b, again)
		}
	})
}

func decode(b []byte) (m Message, err error) {
	err = ipc.Decode(b, m.code)
	return m, err
}
