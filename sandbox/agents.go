package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// agent is what one coding agent needs from the host's environment: its own
// settings and its own key, nobody else's.
type agent struct {
	names []string // base names of the program
	vars  []string // variables; "X_*" is a prefix
	state []string // directories that it keeps between runs: "~/X"
}

// agents is data: to add one, add a line. The variables are those that the
// agent's own documentation names; cloud credentials (AWS_*, GOOGLE_*) are in
// none of them and are released by name with --env.
var agents = []agent{
	{[]string{"claude", "claude-code"}, []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER", "MAX_THINKING_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"}, []string{"~/.claude", "~/.local/state/claude"}},
	{[]string{"codex"}, []string{"OPENAI_*", "CODEX_*", "RUST_LOG"}, []string{"~/.codex"}},
	{[]string{"gemini", "gemini-cli"}, []string{"GEMINI_*", "GOOGLE_API_KEY"}, []string{"~/.gemini"}},
	{[]string{"qwen", "qwen-code"}, []string{"OPENAI_*", "QWEN_*", "DASHSCOPE_API_KEY"}, []string{"~/.qwen"}},
	{[]string{"opencode"}, []string{"OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"}, []string{"~/.local/share/opencode", "~/.local/state/opencode"}},
	{[]string{"aider"}, []string{"AIDER_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_BASE", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"}, []string{"~/.aider"}},
	{[]string{"goose"}, []string{"GOOSE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"}, []string{"~/.local/share/goose", "~/.local/state/goose"}},
	{[]string{"amp"}, []string{"AMP_*"}, []string{"~/.local/share/amp", "~/.local/state/amp"}},
	{[]string{"cursor-agent"}, []string{"CURSOR_*"}, []string{"~/.cursor"}},
	{[]string{"copilot"}, []string{"COPILOT_*"}, []string{"~/.copilot"}},
	{[]string{"crush"}, []string{"CRUSH_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"}, []string{"~/.local/share/crush"}},
	{[]string{"droid"}, []string{"FACTORY_*"}, []string{"~/.factory"}},
}

// AgentVars reports the variables ("X_*" is a prefix) that pass because of the
// program that argv runs; nil if that is not a known agent.
func AgentVars(argv []string) []string {
	name := programName(argv)
	for _, a := range agents {
		if slices.Contains(a.names, name) {
			return slices.Clone(a.vars)
		}
	}
	return nil
}

// AgentState reports what the program that argv runs keeps in the home directory
// and must write: "~/X" is a directory, "~/X" a file. Nil: it is no known agent.
func AgentState(argv []string) []string {
	name := programName(argv)
	for _, a := range agents {
		if slices.Contains(a.names, name) {
			return slices.Clone(a.state)
		}
	}
	return nil
}

// AgentNests reports whether the program that argv runs makes namespaces for
// its tools and fails if it can't: Codex runs every command in bwrap.
func AgentNests(argv []string) bool { return programName(argv) == "codex" }

// MissingAgentKeys reports an agent that argv names but does not run itself (a
// shell or a script does, as in sh -c "claude -p ..."), and the keys of that
// agent that are set on the host but not in env, the program's environment. Nil
// keys: nothing is missing.
func MissingAgentKeys(host, argv, env []string) (name string, keys []string) {
	for i, a := range argv {
		words := []string{a}
		if i > 0 && strings.HasPrefix(argv[i-1], "-") && strings.HasSuffix(argv[i-1], "c") {
			words = strings.FieldsFunc(a, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) })
		}
		for _, w := range words {
			if vars := AgentVars([]string{w}); vars != nil {
				return filepath.Base(w), missingKeys(vars, host, env)
			}
		}
	}
	return "", nil
}

// missingKeys lists the keys among vars that host sets and env does not.
func missingKeys(vars, host, env []string) []string {
	var keys []string
	for _, kv := range host {
		k, v, _ := strings.Cut(kv, "=")
		if v == "" || !validName(k) || !matchesAny(vars, k) || !strings.HasSuffix(k, "_KEY") && !strings.HasSuffix(k, "_TOKEN") {
			continue
		}
		if !slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, k+"=") }) && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
