//go:build !linux

package place

import (
	"path/filepath"

	"egressd/policy/files"
	"egressd/sandbox"
)

// machine is the place for explain: no tier here holds the rules.
func machine(r Run, dir string) files.Place {
	at := files.Place{
		Workspace: Resolve(dir), Login: sandbox.AgentLogin(r.Argv),
		State: append(sandbox.AgentState(r.Argv), sandbox.CacheDirs(r.Env)...),
	}
	if home := sandbox.EnvValue(r.Env, "HOME"); filepath.IsAbs(home) {
		at.Home = Resolve(home)
	}
	return at
}
