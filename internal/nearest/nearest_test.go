package nearest

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"allow", "deny", "denies", ""}
	for _, tt := range []struct {
		word string
		most int
		want string
	}{
		{"alow", 2, "allow"},
		{"allow", 0, "allow"},
		{"alow", 0, ""},
		{"wolla", 2, ""},
		{"den", 1, "deny"},
		{"denie", 2, "denies"},
		{"x", 1, ""}, // one letter away from nothing
		{"xyz", 2, ""},
		{strings.Repeat("x", 65), 99, ""},
	} {
		if got := Word(tt.word, known, tt.most); got != tt.want {
			t.Errorf("%q within %d: got %q, want %q", tt.word, tt.most, got, tt.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "abc", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
