package pool

import (
	"bytes"
	"testing"
)

// TestPutClears gives a buffer back and looks at what the next user may find.
func TestPutClears(t *testing.T) {
	var b Buffers
	for range 100 { // the runtime drops some
		p := b.Get(16)
		if len(*p) != 16 || !bytes.Equal(*p, make([]byte, 16)) {
			t.Fatalf("a buffer with %q in it", *p)
		}
		b.Put(p, copy(*p, "secret"))
	}
}
