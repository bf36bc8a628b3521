package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// agent is what one coding agent needs from the host: its own settings and its own
// key, nobody else's.
type agent struct {
	names []string // base names of the program
	vars  []string // variables; "X_*" is a prefix
	state []string // directories that it keeps between runs: "~/.claude"
	login []string // files it logs in with. They are hidden from every other program

	replaced []AgentFile

	// sandboxVar is the variable that tells the agent that it is in a sandbox: it then
	// says so when something fails, and makes none of its own. "": none that only says
	// so. Claude Code's IS_SANDBOX lifts a check and is the person's to set.
	sandboxVar string
}

// agents is data: to add one, add an entry. Each list is what the agent's own
// documentation names; cloud credentials (AWS_*, GOOGLE_*) are in none of them
// and are released by name with --env. What an agent obeys in later runs
// (settings, hooks, commands) lies in state, too, and is read-only all the same:
// see policy/files/default.txt.
var agents = []agent{
	{
		names: []string{"claude", "claude-code"},
		vars:  []string{"ANTHROPIC_*", "CLAUDE_*", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER", "MAX_THINKING_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS"},
		state: []string{"~/.claude", "~/.local/state/claude"}, login: []string{"~/.claude/.credentials.json"},
		replaced: []AgentFile{{File: "~/.claude.json", Var: "CLAUDE_CONFIG_DIR", Dir: "~/.claude"}},
	},
	{
		names: []string{"codex"}, vars: []string{"OPENAI_*", "CODEX_*", "RUST_LOG"},
		state: []string{"~/.codex"}, login: []string{"~/.codex/auth.json"},
	},
	{
		names: []string{"gemini", "gemini-cli"}, vars: []string{"GEMINI_*", "GOOGLE_API_KEY"},
		state: []string{"~/.gemini"}, login: []string{"~/.gemini/oauth_creds.json", "~/.gemini/.env"}, sandboxVar: "SANDBOX",
	},
	{
		names: []string{"qwen", "qwen-code"}, vars: []string{"OPENAI_*", "QWEN_*", "DASHSCOPE_API_KEY"},
		state: []string{"~/.qwen"}, login: []string{"~/.qwen/oauth_creds.json", "~/.qwen/.env"}, sandboxVar: "SANDBOX",
	},
	{
		names: []string{"opencode"}, vars: []string{"OPENCODE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"},
		state: []string{"~/.local/share/opencode", "~/.local/state/opencode"},
		login: []string{"~/.local/share/opencode/auth.json", "~/.local/share/opencode/mcp-auth.json"},
	},
	{
		names: []string{"aider"}, vars: []string{"AIDER_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_API_BASE", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY"},
		state: []string{"~/.aider"}, login: []string{"~/.aider/oauth-keys.env"},
	},
	{
		names: []string{"goose"}, vars: []string{"GOOSE_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"},
		state: []string{"~/.local/share/goose", "~/.local/state/goose"}, login: []string{"~/.config/goose/secrets.yaml"},
	},
	{
		names: []string{"amp"}, vars: []string{"AMP_*"},
		state: []string{"~/.local/share/amp", "~/.local/state/amp"}, login: []string{"~/.local/share/amp/secrets.json"},
	},
	{
		names: []string{"cursor-agent"}, vars: []string{"CURSOR_*"},
		state: []string{"~/.cursor"}, login: []string{"~/.config/cursor/auth.json"},
	},
	{
		names: []string{"copilot"}, vars: []string{"COPILOT_*"},
		state: []string{"~/.copilot"}, login: []string{"~/.copilot/config.json"},
	},
	{
		names: []string{"crush"}, vars: []string{"CRUSH_*", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"},
		state: []string{"~/.local/share/crush"}, login: []string{"~/.local/share/crush/crush.json"},
	},
	{
		names: []string{"droid"}, vars: []string{"FACTORY_*"},
		state: []string{"~/.factory"}, login: []string{"~/.factory/auth.json", "~/.factory/auth.encrypted"},
	},
}

// find reports the agent that argv runs; nil if that is not a known one.
func find(argv []string) *agent {
	name := programName(argv)
	for i := range agents {
		if slices.Contains(agents[i].names, name) {
			return &agents[i]
		}
	}
	return nil
}

// of reports the agent that argv runs or names; nil: none that is known.
func of(argv []string) *agent {
	if a := find(argv); a != nil {
		return a
	}
	a, _ := named(argv)
	return a
}

// AgentState reports the directories below HOME ("~/X") that the agent keeps that
// argv runs or names, as in sh -c "claude -p ...", and must write. Nil: there is no
// known agent.
func AgentState(argv []string) []string {
	if a := of(argv); a != nil {
		return slices.Clone(a.state)
	}
	return nil
}

// AgentLogin reports the files ("~/X") that this agent logs in with. Nil: it has
// none, or there is no known agent.
func AgentLogin(argv []string) []string {
	if a := of(argv); a != nil {
		return slices.Clone(a.login)
	}
	return nil
}

// AgentFile is a file in the home directory that an agent replaces by rename,
// which nobody can who may not write the directory around it. With Var set to Dir,
// the agent keeps it in there.
type AgentFile struct {
	File string // "~/X"
	Var  string
	Dir  string // "~/Y"; the file's name in there is that of File
}

// AgentFiles reports such files of the agent that argv runs or names. Nil: it has
// none, or there is no known agent.
func AgentFiles(argv []string) []AgentFile {
	if a := of(argv); a != nil {
		return slices.Clone(a.replaced)
	}
	return nil
}

// AgentVars reports the variables ("X_*" is a prefix) that pass because of the
// program that argv runs; nil if that is not a known agent.
func AgentVars(argv []string) []string {
	if a := find(argv); a != nil {
		return slices.Clone(a.vars)
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
	a, word := named(argv)
	if a == nil {
		return "", nil
	}
	return filepath.Base(word), missingKeys(a.vars, host, env)
}

// named reports the first agent that a word of argv names, and that word. Nil:
// none does.
func named(argv []string) (a *agent, word string) {
	for i, arg := range argv {
		words := []string{arg}
		if i > 0 && strings.HasPrefix(argv[i-1], "-") && strings.HasSuffix(argv[i-1], "c") {
			words = strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) })
		}
		for _, w := range words {
			if a := find([]string{w}); a != nil {
				return a, w
			}
		}
	}
	return nil, ""
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
