package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFlagsReference compares the pages about flags with what the programs say
// of themselves, and their defaults where help tells them.
func TestFlagsReference(t *testing.T) {
	p := buildBoth(t)
	sameWords(t, "flags of launch", flagsOf(doc(t, "launch.md", "")), p.flags(t, "launch", "help"))
	sameWords(t, "flags of egressd", flagsOf(doc(t, "egressd.md", "## The daemon")), p.flags(t, "egressd", "help"))
	for _, c := range []string{"capture", "verify", "healthcheck"} {
		sameWords(t, "flags of egressd "+c, flagsOf(doc(t, "egressd.md", "## egressd "+c)), p.flags(t, "egressd", c, "--help"))
	}
	daemon := p.flags(t, "egressd", "help")
	own := slices.DeleteFunc(p.flags(t, "egressd", "explain", "--help"), func(f string) bool { return slices.Contains(daemon, f) })
	sameWords(t, "flags of egressd explain", flagsOf(doc(t, "egressd.md", "## egressd check, explain")), own)
	for _, name := range []string{"launch", "egressd"} {
		text := doc(t, name+".md", "")
		for _, m := range regexp.MustCompile(`(?m)^ {2}`+name+` ([a-z]+)`).FindAllStringSubmatch(p.help(t, name, "help"), -1) {
			if m[1] != "help" && !strings.Contains(text, name+" "+m[1]) && !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("%s %s is not described", name, m[1])
			}
		}
	}
}

var flagName = regexp.MustCompile(`^--[a-z-]+`)

// flagsOf lists the flags that tables describe.
func flagsOf(text string) []string {
	var out []string
	for _, w := range codes(text) {
		if f := flagName.FindString(w); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// built is the directory of our two programs.
type built string

// buildBoth builds both, without what a debugger needs: linking is most of the work.
func buildBoth(t *testing.T) built {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", dir, "./cmd/launch", "./cmd/egressd")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return built(dir)
}

func (p built) help(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(string(p), name), args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

func (p built) flags(t *testing.T, name string, args ...string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^ {2}(--[a-z-]+)`).FindAllStringSubmatch(p.help(t, name, args...), -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}
