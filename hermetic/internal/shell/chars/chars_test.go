package chars

import "testing"

func TestSlice(t *testing.T) {
	const s = "aé\xffz"
	if n := Count(s); n != 4 {
		t.Errorf("Count = %d", n)
	}
	for _, tt := range []struct {
		from, to int
		want     string
	}{
		{0, 4, s}, {1, 2, "é"}, {2, 3, "\xff"}, {3, 4, "z"}, {2, 9, "\xffz"}, {4, 5, ""}, {9, 10, ""}, {0, 0, ""},
	} {
		if got := Slice(s, tt.from, tt.to); got != tt.want {
			t.Errorf("Slice(%d, %d) = %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
	if Head(s[1:]) != "é" {
		t.Errorf("Head = %q", Head(s[1:]))
	}
}
