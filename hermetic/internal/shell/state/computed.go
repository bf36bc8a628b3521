package state

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/vars"
)

// BashVersion is the version of bash whose behaviour this is.
const BashVersion = "5.2.15(1)-release"

// UserID is the user and the group of a script: the vfs gives every file to
// them.
const UserID = 1000

// Computed is a variable that is computed when it is read; nil if name is not
// one. All of them come from the session: no clock but Session.Now, no process,
// no user of the host.
func (sh *Shell) Computed(name string) *vars.Variable {
	switch name {
	case "LINENO":
		return vars.OfInt(int64(sh.Line))
	case "RANDOM":
		return vars.OfInt(int64(sh.Vars.Random.Next15()))
	case "SRANDOM":
		return vars.OfInt(int64(sh.Vars.Random.Next32()))
	case "SECONDS":
		return vars.OfInt(int64(sh.Session.Now().Sub(sh.Vars.Since).Seconds()) + sh.Vars.SecondsBase)
	case "EPOCHSECONDS":
		return vars.OfInt(sh.Session.Now().Unix())
	case "EPOCHREALTIME":
		t := sh.Session.Now()
		return vars.OfString(fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000))
	case "BASHPID":
		return vars.OfInt(int64(sh.Proc.PID))
	case "PPID":
		return readonly(vars.OfInt(int64(sh.Program.ParentPID)))
	case "UID", "EUID":
		return readonly(vars.OfInt(UserID))
	case "GROUPS":
		return vars.OfList([]string{strconv.Itoa(UserID)})
	case "BASH_SUBSHELL":
		return vars.OfInt(int64(sh.Subshells))
	case "BASH_COMMAND":
		return vars.OfString(sh.CommandText())
	case "SHELLOPTS":
		return readonly(vars.OfString(strings.Join(sh.Options.Names(), ":")))
	case "BASHOPTS":
		return readonly(vars.OfString(strings.Join(sh.Options.ShoptsOn(), ":")))
	case "PIPESTATUS":
		out := make([]string, len(sh.PipeStatus))
		for i, n := range sh.PipeStatus {
			out[i] = strconv.Itoa(n)
		}
		return vars.OfList(out)
	case "DIRSTACK":
		return vars.OfList(append([]string{sh.TildeDir(sh.Dir.Path)}, sh.Dir.Stack...))
	case "BASH_ALIASES":
		return vars.OfMap(sh.Commands.Aliases)
	case "BASH_CMDS":
		return vars.OfMap(sh.Commands.Hashed)
	}
	return sh.computedFrames(name)
}

func readonly(v *vars.Variable) *vars.Variable {
	v.Readonly = true
	return v
}

// computedFrames is the variables of the call stack.
func (sh *Shell) computedFrames(name string) *vars.Variable {
	if len(sh.Frames) == 0 && name != "BASH_SOURCE" {
		return nil
	}
	var of func(Frame) string
	bottom := sh.Program.Script
	switch name {
	case "FUNCNAME":
		if !sh.InFunction() {
			return nil
		}
		of, bottom = func(f Frame) string { return f.Name }, "main"
	case "BASH_SOURCE":
		of = func(f Frame) string { return f.Source }
	case "BASH_LINENO":
		of, bottom = func(f Frame) string { return strconv.Itoa(f.CallLine) }, "0"
	default:
		return nil
	}
	var out []string
	for i := len(sh.Frames) - 1; i >= 0; i-- {
		out = append(out, of(sh.Frames[i]))
	}
	if sh.Program.Script != "" {
		out = append(out, bottom)
	}
	return vars.OfList(out)
}

// SetComputed handles an assignment to a variable that is computed. It reports
// true if there is nothing to store.
func (sh *Shell) SetComputed(name, val string) bool {
	switch name {
	case "RANDOM":
		n, _ := strconv.ParseInt(strings.TrimSpace(val), 10, 64)
		sh.Vars.Random.Seed(uint64(n))
		return true
	case "SECONDS":
		n, _ := strconv.ParseInt(strings.TrimSpace(val), 10, 64)
		sh.Vars.SecondsBase, sh.Vars.Since = n, sh.Session.Now()
		return true
	case "LINENO", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "SRANDOM", "FUNCNAME", "GROUPS", "BASH_SUBSHELL", "BASH_COMMAND",
		"PIPESTATUS", "DIRSTACK", "BASH_SOURCE", "BASH_LINENO":
		return true
	case "BASH_ARGV0":
		sh.Program.Arg0 = val
		return true
	}
	return false
}

// Changed follows assignments to variables that the shell depends on.
func (sh *Shell) Changed(name string) {
	switch name {
	case "OPTIND":
		sh.Params.OptChar = 0
	case "PATH":
		clear(sh.Commands.Hashed)
	}
}

// AllExport reports set -a.
func (sh *Shell) AllExport() bool { return sh.Options.On(options.AllExport) }
