package lists

import (
	"fmt"
	"strings"
	"testing"
)

func opts() Options {
	return Options{
		Plain: func(b []byte) bool { return !strings.ContainsAny(string(b), "ABC:/ ") && len(b) > 0 },
		Broad: func(n string) bool { return !strings.Contains(n, ".") },
		Parse: func(rule string) (string, Scope, error) { return "", 0, fmt.Errorf("no") },
	}
}

func million() []byte {
	var b strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "host-%d.list%d.example.com\n", i, i%977)
	}
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	data := million()
	b.SetBytes(int64(len(data)))
	o := opts()
	o.Plain = func(b []byte) bool {
		for _, c := range b {
			if !nameByte(c) {
				return false
			}
		}
		return true
	}
	for b.Loop() {
		if l, p, _ := Read(data, o); l == nil {
			b.Fatal(p)
		}
	}
}
