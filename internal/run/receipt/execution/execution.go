// Package execution is the part of a contract that says what runs, and its hash.
//
//	e := execution.Execution{Kind: "argv", Command: "make", Args: []string{"test"}}
//	hash, err := execution.HashArgv(argv, ".")
package execution

import "egressd/internal/run/receipt/canonical"

// Execution is what runs: an agent with a prompt, a command line or a script.
type Execution struct {
	Kind    string   `json:"kind"` // agent, argv or shell
	Agent   string   `json:"agent,omitempty"`
	Prompt  string   `json:"prompt,omitempty"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Shell   string   `json:"shell,omitempty"` // sh or bash; "": sh
	Script  string   `json:"script,omitempty"`
	Dir     string   `json:"cwd,omitempty"` // in the workspace; "": its root

	Env       *Environment `json:"env,omitempty"`
	TimeoutMS float64      `json:"timeoutMs,omitempty"` // 0: the budget's
	Log       *LogBound    `json:"log,omitempty"`
}

// Environment is what a program finds in its environment.
type Environment struct {
	Inherit []string          `json:"inherit,omitempty"` // names, of the runner's own
	Vars    map[string]string `json:"vars,omitempty"`
	Secrets []SecretVariable  `json:"secrets,omitempty"`
}

// SecretVariable is a variable that gets the value of a secret.
type SecretVariable struct {
	Env        string `json:"env"`
	SecretName string `json:"secretName"`
}

// LogBound bounds what a program may print.
type LogBound struct {
	MaxBytes float64 `json:"maxBytes"`
}

// HashArgv is the hash of a command line that runs in a directory of the workspace, as
// command.executed has it. argv has at least the program.
func HashArgv(argv []string, dir string) (string, error) {
	return canonical.Hash(struct {
		Kind string   `json:"kind"`
		Cmd  string   `json:"cmd"`
		Args []string `json:"args"`
		Dir  string   `json:"cwd"`
	}{"argv", argv[0], append([]string{}, argv[1:]...), dir})
}

// HashShell is the hash of a script that runs in a directory of the workspace.
func HashShell(shell, script, dir string) (string, error) {
	return canonical.Hash(map[string]string{"kind": "shell", "shell": shell, "script": script, "cwd": dir})
}
