package agents

import (
	"slices"
	"strings"
	"testing"
)

func TestArgv(t *testing.T) {
	for kind, want := range map[string]string{
		"claude-code": "claude|-p|do it|--permission-mode|acceptEdits",
		"claude":      "claude|-p|do it|--permission-mode|acceptEdits",
		"codex":       "codex|exec|--skip-git-repo-check|do it",
		"cursor":      "cursor-agent|-p|do it|--force",
		"command":     "sh|-c|do it",
		"mock":        "/bin/launch|dev|mock-agent|do it",
	} {
		got, err := Argv(kind, "do it", "/bin/launch")
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%s: got %q, %v", kind, got, err)
		}
	}
	for kind, want := range map[string]string{"pi": "session of its own", "gpt": "is no agent that launch knows: claude-code, codex", "": "no agent"} {
		if _, err := Argv(kind, "do it", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := Argv("codex", "", ""); err == nil || !strings.Contains(err.Error(), "the prompt is empty") {
		t.Error(err)
	}
	for _, name := range Names() {
		if _, err := Argv(name, "x", ""); err != nil {
			t.Errorf("%s is listed: %v", name, err)
		}
	}
	if Names()[0] = "x"; slices.Contains(Names(), "x") {
		t.Error("the list can be changed from outside")
	}
}
