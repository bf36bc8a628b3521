package state

import (
	"path"
	"strconv"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/vars"
)

// InitVars sets the variables of a new shell that its environment does not set.
func (sh *Shell) InitVars() {
	set := func(name, val string, exported bool) {
		if v := sh.Vars.Scope.Vars[name]; v == nil {
			sh.Vars.Scope.Vars[name] = &vars.Variable{Str: val, IsSet: true, Exported: exported}
		}
	}
	set("PATH", DefaultPath, true)
	set("HOME", "/", true)
	set("HOSTNAME", "localhost", false)
	set("SHELL", "/bin/bash", false)
	sh.Vars.Scope.Vars["IFS"] = &vars.Variable{Str: " \t\n", IsSet: true}
	sh.Vars.Scope.Vars["OPTIND"] = &vars.Variable{Str: "1", IsSet: true}
	set("OPTERR", "1", false)
	set("PS4", "+ ", false)
	if sh.Program.Posix {
		set("PPID", strconv.FormatInt(int64(sh.Program.ParentPID), 10), false)
	}
	set("BASH", "/bin/bash", false)
	set("BASH_VERSION", BashVersion, false)
	sh.Vars.Scope.Vars["BASH_VERSINFO"] = &vars.Variable{
		Kind: vars.Indexed, IsSet: true, Readonly: true,
		List: vars.ListOf([]string{"5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"}),
	}
	set("OSTYPE", "linux-gnu", false)
	set("HOSTTYPE", "x86_64", false)
	set("MACHTYPE", "x86_64-pc-linux-gnu", false)
	set("TERM", "dumb", false)
	sh.initDir()
	level := int64(1)
	if v := sh.Vars.Scope.Vars["SHLVL"]; v != nil {
		level = number.Leading(v.Str) + 1
	}
	sh.Vars.Scope.Vars["SHLVL"] = &vars.Variable{Str: strconv.FormatInt(level, 10), IsSet: true, Exported: true}
}

// initDir keeps $PWD if it is another name of the working directory.
func (sh *Shell) initDir() {
	if sh.Dir.Path == "" {
		sh.Dir.Path = "/"
	}
	if v := sh.Vars.Scope.Vars["PWD"]; v != nil && path.IsAbs(v.Str) && path.Clean(v.Str) == v.Str {
		a, errA := sh.Session.FS.Resolve(v.Str)
		b, errB := sh.Session.FS.Resolve(sh.Dir.Path)
		if errA == nil && errB == nil && a == b {
			sh.Dir.Path = v.Str
		}
	}
	sh.Vars.Scope.Vars["PWD"] = &vars.Variable{Str: sh.Dir.Path, IsSet: true, Exported: true}
	if sh.Vars.Scope.Vars["OLDPWD"] == nil {
		sh.Vars.Scope.Vars["OLDPWD"] = &vars.Variable{Exported: true}
	}
}
