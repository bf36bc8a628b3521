package docs

import (
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
	if err := env.build(); err != nil {
		t.Fatal(err)
	}
	launch := doc(t, "launch.md", "")
	sameWords(t, "flags of launch", flagsOf(launch), helpFlags(t, "launch", "help"))
	sameWords(t, "flags of egressd", flagsOf(doc(t, "egressd.md", "## The daemon")), helpFlags(t, "egressd", "help"))
	for _, c := range []string{"capture", "verify", "healthcheck"} {
		sameWords(t, "flags of egressd "+c, flagsOf(doc(t, "egressd.md", "## egressd "+c)), helpFlags(t, "egressd", c, "--help"))
	}
	daemon := helpFlags(t, "egressd", "help")
	own := slices.DeleteFunc(helpFlags(t, "egressd", "explain", "--help"), func(f string) bool { return slices.Contains(daemon, f) })
	sameWords(t, "flags of egressd explain", flagsOf(doc(t, "egressd.md", "## egressd check, explain")), own)
	for _, name := range programs {
		text := doc(t, name+".md", "")
		for _, m := range regexp.MustCompile(`(?m)^ {2}`+name+` ([a-z]+)`).FindAllStringSubmatch(help(t, name, "help"), -1) {
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

func help(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(env.bin, name), args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return string(out)
}

func helpFlags(t *testing.T, name string, args ...string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^ {2}(--[a-z-]+)`).FindAllStringSubmatch(help(t, name, args...), -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}
