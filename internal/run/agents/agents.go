// Package agents turns the name of an agent and a prompt into the command line that
// runs the agent once, without a person.
//
//	argv, err := agents.Argv("claude-code", "fix the tests", "/usr/bin/launch")
package agents

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of agents.
const (
	Claude  = "claude-code"
	Codex   = "codex"
	Cursor  = "cursor"
	Command = "command" // the prompt is a shell script
	Mock    = "mock"    // part of launch: for tests of everything around an agent
	pi      = "pi"
)

// kinds are the agents that run here, in the order in which they are listed.
var kinds = []string{Claude, Codex, Cursor, Command, Mock}

// Names lists the agents that Argv knows.
func Names() []string { return slices.Clone(kinds) }

// Argv is the command line for a prompt. self is the path of launch, which the mock
// agent is part of.
func Argv(kind, prompt, self string) ([]string, error) {
	if prompt == "" {
		return nil, fmt.Errorf("the prompt is empty: launch --agent %s \"fix the tests\"", kind)
	}
	switch kind {
	case Claude, "claude":
		return []string{"claude", "-p", prompt, "--permission-mode", "acceptEdits"}, nil
	case Codex:
		return []string{"codex", "exec", "--skip-git-repo-check", prompt}, nil
	case Cursor, "cursor-agent":
		return []string{"cursor-agent", "-p", prompt, "--force"}, nil
	case Command:
		return []string{"sh", "-c", prompt}, nil
	case Mock:
		return []string{self, "dev", "mock-agent", prompt}, nil
	case pi:
		return nil, fmt.Errorf("pi runs in a session of its own program, which launch does not have: %s", strings.Join(kinds, ", "))
	}
	return nil, fmt.Errorf("%q is no agent that launch knows: %s; for any other, write launch -- PROGRAM ARGUMENT", kind, strings.Join(kinds, ", "))
}
