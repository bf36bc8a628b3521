package workspace

import "testing"

func TestSafePath(t *testing.T) {
	for _, name := range []string{"a", "a/b.txt", ".gitignore", ".github/x", "a b/\xff", "git", ".gitmodules"} {
		if err := safePath(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", "/etc/passwd", "..", "../a", "a/../b", "a//b", "./a", "a/", "a\x00b",
		".git/config", ".GIT/hooks/x", "sub/.git/config", ".git./config", ".git /x", "git~1/config", "GIT~1/x", ".g\u200cit/config", ".git:x/y", ".git::$INDEX_ALLOCATION/config",
	} {
		if safePath(name) == nil {
			t.Errorf("%q is a safe path", name)
		}
	}
}

func TestPatterns(t *testing.T) {
	list, err := parsePatterns(append(DenyPatterns(), "secrets/**", "**/private/*.txt", "only/here"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		".env": true, "a/.env": true, ".env.local": true, "a/b/server.key": true, "x.PEM": true, "id_rsa": true, "id_ed25519.pub": true,
		"secrets/a/b": true, "private/a.txt": true, "x/private/a.txt": true, "only/here": true, ".ENV": true,
		"env": false, "a/.envrc": false, "x/secrets/a": false, "private/x/a.txt": false, "a/only/here": false, "key": false,
	} {
		if list.match(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	for _, p := range []string{"", "a{b,c}", "[", "!x", "a/["} {
		if _, err := parsePatterns([]string{p}); err == nil {
			t.Errorf("pattern %q is taken", p)
		}
	}
}

// What git makes of a file, without git.
func TestBlobName(t *testing.T) {
	if got := blobName([]byte("hello\n"), hexSHA1); got != "ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Error(got)
	}
	if got := blobName([]byte("hello\n"), hexSHA256); got != "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4" {
		t.Error(got)
	}
	if got := quoted("a\"\\\n\xff b"); got != `"a\"\\\012\377 b"` {
		t.Error(got)
	}
}
