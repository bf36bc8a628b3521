package sandbox

import "path/filepath"

// cacheVars are the variables by which a person moves a tool's cache, and what
// below it the tool must write.
var cacheVars = []struct {
	name  string
	below []string
}{
	{"CLAUDE_CONFIG_DIR", []string{"."}}, // passes to that agent alone, as does the next
	{"CODEX_HOME", []string{"."}},
	{"XDG_CACHE_HOME", []string{"."}},
	{"GOCACHE", []string{"."}},
	{"GOMODCACHE", []string{"."}},
	{"GOPATH", []string{"pkg"}},
	{"CARGO_HOME", []string{"registry", "git"}},
	{"GRADLE_USER_HOME", []string{"caches", "wrapper", "daemon", "native"}},
}

// CacheDirs reports the directories that tools must write because env moves their
// caches, or an agent's state, there. Nil: it moves none.
func CacheDirs(env []string) []string {
	var out []string
	for _, v := range cacheVars {
		dir := EnvValue(env, v.name)
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
			continue
		}
		for _, below := range v.below {
			out = append(out, filepath.Join(dir, below))
		}
	}
	return out
}

// AgentFile is a file in the home directory that an agent replaces by rename,
// which nobody can who may not write the directory around it. With Var set to Dir,
// the agent keeps it in there.
type AgentFile struct {
	File string // "~/X"
	Var  string
	Dir  string // "~/Y"; the file's name in there is that of File
}

// AgentFiles reports the files of the agent that argv runs. Nil: it has none, or
// is no known agent.
func AgentFiles(argv []string) []AgentFile {
	switch programName(argv) {
	case "claude", "claude-code":
		return []AgentFile{{File: "~/.claude.json", Var: "CLAUDE_CONFIG_DIR", Dir: "~/.claude"}}
	}
	return nil
}
