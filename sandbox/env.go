package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// passed names the variables that every program gets: its place, its user, the
// language and the terminal. None of them is a credential, redirects traffic, or
// makes a program load code.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD",
	"LANG", "LANGUAGE", "LC_*", "TZ",
	"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES",
	"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
	"EDITOR", "VISUAL", "PAGER", "LESS", "LS_COLORS",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
	"CI", "SOURCE_DATE_EPOCH",
	// Where tool chains live, and their caches: paths, no secrets.
	"GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOBIN", "GOTOOLCHAIN", "CGO_ENABLED",
	"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME", "MAVEN_HOME", "GRADLE_USER_HOME",
	"NVM_DIR", "NVM_BIN", "PNPM_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT",
}

// remote names those of passed that mean the same on another machine.
var remote = []string{
	"LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES",
	"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "SOURCE_DATE_EPOCH",
}

// PassesRemotely reports whether [RemoteEnv] passes the variable to every program
// without being asked. Its value is not a secret.
func PassesRemotely(name string) bool { return matchesAny(remote, name) }

// RemoteEnv is [Env] for a program that runs on another machine: variables about
// this one, such as PATH and HOME, do not pass.
func RemoteEnv(host, argv, named []string) ([]string, error) { return env(remote, host, argv, named) }

// Env builds a program's environment from the host's, host first being
// KEY=VALUE pairs as os.Environ reports them.
//
// What passes: a fixed list of harmless variables, what the agent that argv
// names is known to need (see [AgentVars]), and what the person named: "NAME"
// copies the host's value (it is an error when the host has none), "NAME=VALUE"
// sets one. The [Marker] is added, and the variable by which the agent learns that it
// is in a sandbox. The result is sorted and holds each name once; a named value wins.
//
// Threat: an untrusted program reads tokens that lie around in the environment
// (AWS_*, GITHUB_TOKEN, SSH_AUTH_SOCK), or is steered by one (LD_PRELOAD,
// HTTP_PROXY, NODE_OPTIONS) -> nothing passes that is not listed or named. Left
// over: what is named is released; files under HOME stay readable.
func Env(host, argv, named []string) ([]string, error) { return env(passed, host, argv, named) }

func env(harmless, host, argv, named []string) ([]string, error) {
	patterns := append(slices.Clone(harmless), AgentVars(argv)...)
	have := make(map[string]string, len(host))
	all := make(map[string]string, len(host))
	for _, kv := range host {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || !validName(k) {
			continue
		}
		have[k] = v
		if matchesAny(patterns, k) {
			all[k] = v
		}
	}
	for _, n := range named {
		k, v, set := strings.Cut(n, "=")
		if !validName(k) {
			return nil, fmt.Errorf("environment name %q: letters, digits and _ only, not starting with a digit", k)
		}
		if !set {
			if v, set = have[k]; !set {
				return nil, fmt.Errorf("environment variable %s is not set here: set it, or give a value with %s=VALUE", k, k)
			}
		}
		if strings.IndexByte(v, 0) >= 0 {
			return nil, fmt.Errorf("environment variable %s holds a NUL byte", k)
		}
		all[k] = v
	}
	mark(all, argv)
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out, nil
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// matchesAny reports whether a pattern is name, or a prefix of it before "*".
func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, wild := strings.CutSuffix(p, "*"); wild && strings.HasPrefix(name, prefix) || p == name {
			return true
		}
	}
	return false
}

// wrappers are programs that run the one that is named after them.
var wrappers = []string{
	"env", "nice", "time", "timeout", "stdbuf", "exec",
	"npx", "bunx", "pnpx", "uvx", "npm", "node", "bun",
}

// programName reports the name that argv runs, through wrappers with their
// flags, assignments and numbers: "npx claude", "env A=1 claude", "nice -n 5
// claude".
func programName(argv []string) string {
	for _, a := range argv {
		name := filepath.Base(a)
		if at := strings.LastIndexByte(name, '@'); at > 0 {
			name = name[:at] // claude-code@latest
		}
		switch {
		case a == "" || a[0] == '-' || '0' <= a[0] && a[0] <= '9' || strings.Contains(a, "="):
		case slices.Contains(wrappers, name):
		default:
			return name
		}
	}
	return ""
}
