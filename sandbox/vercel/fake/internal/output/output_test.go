package output

import (
	"strings"
	"testing"
)

// More output than is kept in memory goes through a file.
func TestOutputSpills(t *testing.T) {
	o := New(t.TempDir() + "/o")
	defer o.Release()
	text := []byte(strings.Repeat("x", 30<<10))
	for range 10 {
		o.Add(Stderr, text)
	}
	o.End()
	n := 0
	for at := int64(0); ; {
		rec, err := o.Read(t.Context(), at)
		if err != nil || rec.Cut {
			t.Fatal(err, rec.Cut)
		}
		if !rec.More {
			break
		}
		if rec.Stream != Stderr || string(rec.Text) != string(text) {
			t.Fatalf("record %d: %d bytes of stream %d", n, len(rec.Text), rec.Stream)
		}
		n, at = n+1, rec.Next
	}
	if n != 10 || o.file == nil || len(o.head) > headBytes {
		t.Errorf("%d records, file %v, %d in memory", n, o.file, len(o.head))
	}
	o.Enter()
	o.Release()
	if rec, err := o.Read(t.Context(), 0); err != nil || !rec.More {
		t.Errorf("released under a reader: %v", err)
	}
	o.Leave()
	if _, err := o.Read(t.Context(), 0); err == nil {
		t.Error("released, and read all the same")
	}
}

func TestCutCharacter(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "ä": 0, "a\xc3": 1, "\xe2\x82": 2, "\xf0\x9f\x98": 3, "\xff": 0, "\x80\x80\x80\x80": 0, "€": 0} {
		if got := cutCharacter([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
