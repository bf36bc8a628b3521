package sandbox

import (
	"slices"
	"testing"
)

// A variable that names the home directory, or one above it, opens nothing.
func TestCacheDirs(t *testing.T) {
	for value, want := range map[string][]string{
		"/": nil, "/home": nil, "/home/me": nil, "/home/me/": nil, "relative": nil, "": nil,
		"/home/me/c": {"/home/me/c"}, "/home/me2": {"/home/me2"}, "/home/me/../me": nil,
	} {
		if got := CacheDirs([]string{"HOME=/home/me", "XDG_CACHE_HOME=" + value}); !slices.Equal(got, want) {
			t.Errorf("%q opens %q, want %q", value, got, want)
		}
	}
	if got := CacheDirs([]string{"HOME=/home/me", "CARGO_HOME=/home/me"}); !slices.Equal(got, []string{"/home/me/registry", "/home/me/git"}) {
		t.Errorf("got %q", got)
	}
}

func TestAgentPlaces(t *testing.T) {
	for _, argv := range [][]string{{"claude", "-p"}, {"npx", "claude-code@latest"}, {"sh", "-c", "cd x && claude -p y"}} {
		if !slices.Contains(AgentState(argv), "~/.claude") || !slices.Contains(AgentLogin(argv), "~/.claude/.credentials.json") || len(AgentFiles(argv)) != 1 {
			t.Errorf("%q is not known", argv)
		}
	}
	if argv := []string{"make"}; AgentState(argv) != nil || AgentLogin(argv) != nil || AgentFiles(argv) != nil {
		t.Error("make is an agent")
	}
}
