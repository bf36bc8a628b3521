package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// tool is a program that is no agent and logs in with variables.
type tool struct {
	names []string
	vars  []string // "X_*" is a prefix
}

// tools is data: to add one, add an entry. None of these variables passes unless it
// is named with --env: the list only says what to type.
var tools = []tool{
	{[]string{"gh"}, []string{"GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"}},
	{[]string{"npm", "npx", "pnpm", "yarn"}, []string{"NPM_TOKEN", "NODE_AUTH_TOKEN", "YARN_NPM_AUTH_TOKEN"}},
	{[]string{"aws", "sam", "cdk"}, []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"}},
	{[]string{"gcloud", "gsutil", "bq"}, []string{"GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_AUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"}},
	{[]string{"docker", "podman", "buildah", "skopeo", "crane"}, []string{"DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE"}},
	{[]string{"pip", "pip3", "uv", "poetry", "twine"}, []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_*", "UV_PUBLISH_TOKEN", "POETRY_PYPI_TOKEN_*", "TWINE_USERNAME", "TWINE_PASSWORD"}},
	{[]string{"cargo"}, []string{"CARGO_REGISTRY_TOKEN", "CARGO_REGISTRIES_*"}},
	{[]string{"vercel", "vc"}, []string{"VERCEL_TOKEN", "VERCEL_ORG_ID", "VERCEL_PROJECT_ID"}},
}

// Missing is a program that a command line names, and the variables it logs in with
// that are set on the host and do not pass.
type Missing struct {
	Program string
	Vars    []string
}

// MissingCredentials reports the tools that argv runs or names, as in sh -c "gh pr
// list", and what they will miss: variables that host sets and env, the program's
// environment, does not. Nil: nothing.
func MissingCredentials(host, argv, env []string) []Missing {
	var all []Missing
	for _, t := range tools {
		name := t.in(argv)
		if name == "" {
			continue
		}
		if vars := t.missing(host, env); len(vars) > 0 {
			all = append(all, Missing{name, vars})
		}
	}
	return all
}

// in reports the name by which argv runs t: as the program itself, behind a wrapper,
// or as a word of a shell's -c. "": it does not.
func (t tool) in(argv []string) string {
	for i, arg := range argv {
		words := []string{arg}
		shell := i > 0 && strings.HasPrefix(argv[i-1], "-") && strings.HasSuffix(argv[i-1], "c")
		if shell {
			words = strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`", r) })
		}
		for _, w := range words {
			if name := filepath.Base(w); slices.Contains(t.names, name) {
				return name
			}
		}
		if !shell && !passesOn(arg) {
			if i+1 < len(argv) && strings.HasPrefix(argv[i+1], "-") {
				continue // a shell and its -c, perhaps
			}
			return ""
		}
	}
	return ""
}

// passesOn reports whether what follows arg may still be the program: arg is a
// wrapper, or belongs to one.
func passesOn(arg string) bool {
	return arg == "" || arg[0] == '-' || '0' <= arg[0] && arg[0] <= '9' || strings.Contains(arg, "=") || slices.Contains(wrappers, filepath.Base(arg))
}

// missing lists the variables of t that host sets and env does not.
func (t tool) missing(host, env []string) []string {
	var vars []string
	for _, kv := range host {
		name, value, _ := strings.Cut(kv, "=")
		if value == "" || !validName(name) || !matchesAny(t.vars, name) || slices.Contains(vars, name) {
			continue
		}
		if !slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			vars = append(vars, name)
		}
	}
	slices.Sort(vars)
	return vars
}
