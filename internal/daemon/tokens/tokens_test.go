package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	first  = "5f2b1c0e9d8a47663f21"
	second = "another-token-of-some-length"
)

func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

func parse(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Parse("tokens.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLookup(t *testing.T) {
	s := parse(t, "# who is who\n\nbuild "+first+"\r\n\t review \t "+hashed(second)+"\nbuild third-token-0123456789")
	for _, tt := range []struct {
		token, want string
	}{
		{first, "build"},
		{second, "review"},
		{"third-token-0123456789", "build"},
		{hashed(second), ""}, // the hash is no token
		{hashed(second)[len(hashPrefix):], ""},
		{first + "0", ""},
		{first[:len(first)-1], ""},
		{strings.ToUpper(first), ""},
		{"", ""},
		{"build", ""},
		{strings.Repeat("x", 1<<20), ""},
	} {
		name, ok := s.Lookup(tt.token)
		if name != tt.want || ok != (tt.want != "") {
			t.Errorf("Lookup(%.40q) = %q, %v; want %q", tt.token, name, ok, tt.want)
		}
	}
	refs := s.Refs()
	want := []Ref{{"build", "tokens.txt:3"}, {"review", "tokens.txt:4"}, {"build", "tokens.txt:5"}}
	if len(refs) != len(want) {
		t.Fatalf("got %v", refs)
	}
	for i := range want {
		if refs[i] != want[i] {
			t.Errorf("ref %d is %v, want %v", i, refs[i], want[i])
		}
	}
}

// Nobody's set, and an empty file, know nobody.
func TestNone(t *testing.T) {
	var none *Set
	for _, s := range []*Set{none, parse(t, ""), parse(t, "# nobody\n"), new(Set)} {
		if name, ok := s.Lookup(first); ok || name != "" || len(s.Refs()) != 0 {
			t.Errorf("an empty set knows %q", name)
		}
	}
}

// The same token is another number in every set: what leaks of one is worth
// nothing for another.
func TestKeysDiffer(t *testing.T) {
	a, b := parse(t, "x "+first), parse(t, "x "+first)
	for h := range a.byHash {
		if b.byHash[h] != nil {
			t.Error("two sets share a key")
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	s := parse(t, "build "+first)
	if n := testing.AllocsPerRun(100, func() { s.Lookup(first); s.Lookup(second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string // parts of the error
		not      string   // what must not be repeated
	}{
		{"one word", "build\n", []string{"tokens.txt:1: ", "NAME TOKEN"}, ""},
		{"three words", "\nbuild a-token-0123456789 extra\n", []string{"tokens.txt:2: ", "3 words"}, "a-token"},
		{"short", "build 0123456789abcde", []string{"at least 16", "openssl rand"}, "0123456789abcde"},
		{"long", "build " + strings.Repeat("a", 256), []string{"at most 255"}, "aaaa"},
		{"colon", "build 0123456789:abcdef", []string{"without ':'"}, "0123456789"},
		{"control", "build 0123456789abcdef\x01", []string{"printable"}, "0123456789"},
		{"not ASCII", "build 0123456789abcdefé", []string{"printable"}, "0123456789"},
		{"bad name", "Build " + first, []string{"lower-case"}, first},
		{"swapped words", first + "!! build", []string{"NAME TOKEN"}, first},
		{"name that ends in a dot", "b. " + first, []string{"letter or digit at both ends"}, first},
		{"long name", strings.Repeat("n", 64) + " " + first, []string{"more than 63"}, first},
		{"short hash", "build sha256:abcd", []string{"64 hexadecimal"}, ""},
		{"hash of nothing", "build " + hashed(""), []string{"was the variable empty"}, ""},
		{"twice", "build " + first + "\nreview " + first, []string{"tokens.txt:2: ", "tokens.txt:1", "build"}, first},
		{"twice, once hashed", "build " + hashed(first) + "\nbuild " + first, []string{"tokens.txt:2: ", "tokens.txt:1"}, first},
		{"all of them", "build\nx y z\n", []string{"tokens.txt:1: ", "tokens.txt:2: "}, ""},
		{"NUL", "build\x00 " + first, []string{"lower-case"}, first},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Parse("tokens.txt", []byte(tt.in))
			if err == nil || s != nil {
				t.Fatalf("got %v, %v", s, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if tt.not != "" && strings.Contains(err.Error(), tt.not) {
				t.Errorf("%q repeats the token", err)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	if _, err := Parse("t", make([]byte, maxFileBytes+1)); err == nil {
		t.Error("a file of any size is read")
	}
	_, err := Parse("t", []byte(strings.Repeat("x\n", 10000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxProblems {
		t.Errorf("%d problems are told, want %d", n, maxProblems)
	}
	if _, ok := parse(t, "build "+strings.Repeat("a", 16)).Lookup(strings.Repeat("a", 16)); !ok {
		t.Error("16 characters are enough")
	}
	if _, ok := parse(t, "build "+strings.Repeat("a", 255)).Lookup(strings.Repeat("a", 255)); !ok {
		t.Error("255 characters are possible")
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.txt")
	if err := os.WriteFile(path, []byte("build "+first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode os.FileMode
		want string // part of the error; "": good
	}{
		{0o600, ""},
		{0o400, ""},
		{0o440, ""},
		{0o640, ""},
		{0o644, "chmod 0640 " + path},
		{0o604, "everybody can read"},
		{0o660, "others can change"},
		{0o602, "others can change"},
	} {
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path, nil)
		if _, ok := s.Lookup(first); ok != (tt.want == "") {
			t.Errorf("mode %o: known is %v", tt.mode, ok)
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("mode %o: %v, want %q", tt.mode, err, tt.want)
		}
	}
	if _, err := Load(path+"x", nil); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("got %v", err)
	}
}

// What parses is looked up again under the same name, and nothing else is.
func FuzzParse(f *testing.F) {
	f.Add("build " + first + "\nreview " + hashed(second) + "\n")
	f.Add("# x\n\n \t\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("t", []byte(text))
		if err != nil {
			if s != nil {
				t.Fatal("an error comes with a set")
			}
			return
		}
		n := 0
		for line := range strings.Lines(text) {
			f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' })
			if len(f) == 0 || f[0][0] == '#' {
				continue
			}
			if n++; len(f) != 2 {
				t.Fatalf("%q was accepted", line)
			}
			name, ok := s.Lookup(f[1])
			if hash := strings.HasPrefix(f[1], hashPrefix); ok == hash || ok && name != f[0] {
				t.Fatalf("%q is looked up as %q, %v", line, name, ok)
			}
		}
		if n != len(s.Refs()) {
			t.Fatalf("%d lines, %d refs", n, len(s.Refs()))
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	s, err := Parse("t", []byte("build "+first))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Lookup(first)
	}
}
