package sandbox

import (
	"path/filepath"
	"strings"
)

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
//
// Threat: a variable names HOME or a directory above it, so that all of it becomes
// writable -> such a value counts for nothing. Left over: any other directory that
// the person's environment names is trusted to be a cache, as it is outside.
func CacheDirs(env []string) []string {
	var out []string
	for _, v := range cacheVars {
		dir := EnvValue(env, v.name)
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, below := range v.below {
			if p := filepath.Join(dir, below); !above(p, filepath.Clean(EnvValue(env, "HOME"))) {
				out = append(out, p)
			}
		}
	}
	return out
}

// above reports whether path is dir, or a directory above it.
func above(path, dir string) bool {
	return path == "/" || path == dir || strings.HasPrefix(dir, path+"/")
}
