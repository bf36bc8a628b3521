package gitignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestIgnored(t *testing.T) {
	for _, tt := range []struct {
		rules, name string
		dir, want   bool
	}{
		{"*.o", "a/b/x.o", false, true},
		{"*.o\n!keep.o", "keep.o", false, false},
		{"!keep.o\n*.o", "keep.o", false, true},
		{"/build", "build", true, true},
		{"/build", "a/build", true, false},
		{"build/", "build", false, false},
		{"build/", "a/build", true, true},
		{"a/*.c", "a/x.c", false, true},
		{"a/*.c", "b/a/x.c", false, false},
		{"a/*.c", "a/b/x.c", false, false},
		{"**/logs", "x/y/logs", true, true},
		{"**/logs", "logs", true, true},
		{"logs/**", "logs", true, false},
		{"logs/**", "logs/a/b", false, true},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a/**/z", "ab/z", false, false},
		{`\#x`, "#x", false, true},
		{"#x", "#x", false, false},
		{`\!x`, "!x", false, true},
		{"x ", "x", false, true},
		{`x\ `, "x ", false, true},
		{"[a-c]x", "bx", false, true},
		{"[!a-c]x", "bx", false, false},
		{"[[:digit:]]x", "7x", false, true},
		{"[]x]", "]", false, true},
		{"[x", "[x", false, false},
		{"?", "é", false, false},
		{"", "x", false, false},
		{"/", "x", true, false},
		{"x\r\n", "x", false, true},
	} {
		var m Matcher
		m.Add("", []byte(tt.rules))
		if got := m.Ignored(tt.name, tt.dir); got != tt.want {
			t.Errorf("rules %q: %q (directory %v) ignored: %v", tt.rules, tt.name, tt.dir, got)
		}
	}
}

func TestDeeperRulesWin(t *testing.T) {
	var m Matcher
	m.Add("", []byte("*.log\n"))
	n := m.Len()
	m.Add("a", []byte("!x.log\n/y\n"))
	if m.Ignored("a/x.log", false) || !m.Ignored("b/x.log", false) || !m.Ignored("a/y", false) || m.Ignored("a/b/y", false) {
		t.Error("the rules of a/.gitignore are not taken from a on")
	}
	m.Cut(n)
	if !m.Ignored("a/x.log", false) {
		t.Error("a rule stays after Cut")
	}
}

// TestAsGit compares with git itself over random rules and names.
func TestAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(stdin string, args ...string) []byte {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	git("", "init", "-q")
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	parts := []string{"a", "b", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", `\a`, "ab", "a**b"}
	names := []string{"a", "b", "ab", "ba", "c"}
	for range 60 {
		var rules, paths strings.Builder
		for range 1 + random.IntN(3) {
			pattern := pick(parts)
			for range random.IntN(3) {
				pattern += "/" + pick(parts)
			}
			fmt.Fprintf(&rules, "%s%s%s%s\n", pick([]string{"", "", "!"}), pick([]string{"", "/"}), pattern, pick([]string{"", "", "/"}))
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		var all []string
		for range 12 {
			name := pick(names)
			for range random.IntN(4) {
				name += "/" + pick(names)
			}
			all = append(all, name)
			paths.WriteString(name + "\x00")
		}
		ignored := map[string]bool{}
		for _, name := range bytes.Split(git(paths.String(), "check-ignore", "--no-index", "-z", "--stdin"), []byte{0}) {
			ignored[string(name)] = true
		}
		var m Matcher
		m.Add("", []byte(rules.String()))
		for _, name := range all {
			if got := ignoredAsWalked(&m, name); got != ignored[name] {
				t.Errorf("rules %q: %s ignored: %v, by git: %v", rules.String(), name, got, ignored[name])
			}
		}
	}
}

// ignoredAsWalked asks for each directory on the way first, as a walk does.
func ignoredAsWalked(m *Matcher, name string) bool {
	for i := range name {
		if name[i] == '/' && m.Ignored(name[:i], true) {
			return true
		}
	}
	return m.Ignored(name, false)
}

// TestTracked reads indexes that git wrote.
func TestTracked(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, version := range []string{"2", "3", "4"} {
		dir := t.TempDir()
		names := []string{"a", "dir/b", "dir/" + strings.Repeat("long", 60), "dir/c", "é", "z z"}
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{{"init", "-q"}, {"update-index", "--index-version", version}, {"add", "."}} {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v: %s", args, err, out)
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		tracked, err := Tracked(data, 20)
		if err != nil || len(tracked) != len(names) || !tracked["dir/"+strings.Repeat("long", 60)] || !tracked["z z"] || !tracked["é"] {
			t.Errorf("version %s: %v, %v", version, tracked, err)
		}
	}
}

func FuzzTracked(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Add([]byte("DIRC\x00\x00\x00\x04\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tracked, err := Tracked(data, 20)
		if err == nil && len(tracked) > len(data) {
			t.Errorf("%d entries of %d bytes", len(tracked), len(data))
		}
	})
}

func FuzzIgnored(f *testing.F) {
	f.Add("a/**/b[!x]\n!*.c", "a/q/b")
	f.Fuzz(func(t *testing.T, rules, name string) {
		var m Matcher
		m.Add("", []byte(rules))
		m.Ignored(name, true)
	})
}
