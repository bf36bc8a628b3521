package shell

import (
	"fmt"
	"strconv"
	"strings"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

const bashVersion = "5.2.15(1)-release"

// specialNames are the variables that the shell computes when they are read.
func specialNames() []string {
	return []string{
		"BASHOPTS", "BASHPID", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_COMMAND", "DIRSTACK", "EPOCHREALTIME",
		"EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "LINENO", "PIPESTATUS", "PPID", "RANDOM", "SECONDS", "SHELLOPTS",
		"SRANDOM", "UID", "BASH_ALIASES", "BASH_CMDS",
	}
}

func ofString(s string) *variable { return &variable{str: s, isSet: true} }
func ofInt(n int64) *variable     { return &variable{str: itoa(n), isSet: true, integer: true} }
func ofList(vals []string) *variable {
	return &variable{kind: indexedVar, list: listOf(vals), isSet: len(vals) > 0}
}

func readonly(v *variable) *variable {
	v.readonly = true
	return v
}

// special computes a variable of the shell itself; nil when name is none. All
// of them are the session's: no clock but Session.Now, no process, no user.
func (sh *shell) special(name string) *variable {
	if name == "" || name[0] < 'B' || name[0] > 'U' || sh.plainNames[name] {
		return nil
	}
	switch name {
	case "LINENO":
		return ofInt(int64(sh.line))
	case "RANDOM":
		return ofInt(int64(sh.random.next15()))
	case "SRANDOM":
		return ofInt(int64(sh.random.next32()))
	case "SECONDS":
		return ofInt(int64(sh.ses.Now().Sub(sh.started).Seconds()) + sh.secondsBase)
	case "EPOCHSECONDS":
		return ofInt(sh.ses.Now().Unix())
	case "EPOCHREALTIME":
		t := sh.ses.Now()
		return ofString(fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000))
	case "BASHPID":
		return ofInt(int64(sh.proc.pid))
	case "PPID":
		return readonly(ofInt(int64(sh.run.ppid)))
	case "UID", "EUID":
		return readonly(ofInt(userID))
	case "GROUPS":
		return ofList([]string{strconv.Itoa(userID)})
	case "BASH_SUBSHELL":
		return ofInt(int64(sh.subshells))
	case "BASH_COMMAND":
		return ofString(sh.commandText())
	case "SHELLOPTS":
		return readonly(ofString(strings.Join(sh.optsOn(), ":")))
	case "BASHOPTS":
		return readonly(ofString(strings.Join(sh.shoptsOn(), ":")))
	case "PIPESTATUS":
		out := make([]string, len(sh.pipeStatus))
		for i, n := range sh.pipeStatus {
			out[i] = strconv.Itoa(n)
		}
		return ofList(out)
	case "DIRSTACK":
		return ofList(append([]string{sh.tildeDir(sh.dir)}, sh.dirStack...))
	case "BASH_ALIASES":
		a := newAssoc()
		for k, v := range sh.aliases {
			a.set(k, v)
		}
		return &variable{kind: assocVar, pairs: a, isSet: len(a.vals) > 0}
	case "BASH_CMDS":
		a := newAssoc()
		for k, v := range sh.hashed {
			a.set(k, v)
		}
		return &variable{kind: assocVar, pairs: a, isSet: len(a.vals) > 0}
	}
	return sh.specialFrames(name)
}

// userID is who a script is: the vfs owns every file to the same.
const userID = 1000

func (sh *shell) specialFrames(name string) *variable {
	if len(sh.frames) == 0 && name != "BASH_SOURCE" {
		return nil
	}
	var out []string
	switch name {
	case "FUNCNAME":
		inFunc := false
		for i := len(sh.frames) - 1; i >= 0; i-- {
			out = append(out, sh.frames[i].name)
			inFunc = inFunc || sh.frames[i].function
		}
		if !inFunc {
			return nil
		}
		if sh.run.script != "" {
			out = append(out, "main")
		}
	case "BASH_SOURCE":
		for i := len(sh.frames) - 1; i >= 0; i-- {
			out = append(out, sh.frames[i].source)
		}
		if sh.run.script != "" {
			out = append(out, sh.run.script)
		}
	case "BASH_LINENO":
		for i := len(sh.frames) - 1; i >= 0; i-- {
			out = append(out, strconv.Itoa(sh.frames[i].callLine))
		}
		if sh.run.script != "" {
			out = append(out, "0")
		}
	default:
		return nil
	}
	return ofList(out)
}

// assignedSpecial takes assignments that the shell itself hears; true when
// there is nothing to store.
func (sh *shell) assignedSpecial(name, val string) bool {
	if name == "" || name[0] < 'B' || name[0] > 'U' || sh.plainNames[name] {
		return false
	}
	switch name {
	case "RANDOM":
		n, _ := strconv.ParseInt(strings.TrimSpace(val), 10, 64)
		sh.random.seed(uint64(n))
		return true
	case "SECONDS":
		n, _ := strconv.ParseInt(strings.TrimSpace(val), 10, 64)
		sh.secondsBase, sh.started = n, sh.ses.Now()
		return true
	case "LINENO", "BASHPID", "EPOCHSECONDS", "EPOCHREALTIME", "SRANDOM", "FUNCNAME", "GROUPS", "BASH_SUBSHELL", "BASH_COMMAND",
		"PIPESTATUS", "DIRSTACK", "BASH_SOURCE", "BASH_LINENO":
		return true
	case "BASH_ARGV0":
		sh.run.arg0 = val
		return true
	}
	return false
}

// wasSet follows a variable that the shell looks at.
func (sh *shell) wasSet(name string) {
	if name == "OPTIND" {
		sh.optChar = 0
	}
	if name == "PATH" {
		clear(sh.hashed)
	}
}

func (sh *shell) wasUnset(name string) {
	for _, s := range specialNames() {
		if s == name {
			if sh.plainNames == nil {
				sh.plainNames = map[string]bool{}
			}
			sh.plainNames[name] = true
		}
	}
}

// rng is bash's own generator (Park and Miller), so that a seeded RANDOM gives
// bash's numbers.
type rng struct {
	state uint32
	last  uint32
}

func (r *rng) seed(n uint64) { r.state, r.last = uint32(n), 0 }

func (r *rng) step() uint32 {
	s := int64(int32(r.state))
	if s == 0 {
		s = 123459876
	}
	h, l := s/127773, s%127773
	t := 16807*l - 2836*h
	if t < 0 {
		t += 0x7fffffff
	}
	r.state = uint32(t)
	return r.state
}

func (r *rng) next15() uint32 {
	for {
		s := r.step()
		n := (s>>16 ^ s&0xffff) & 32767
		if n != r.last {
			r.last = n
			return n
		}
	}
}

func (r *rng) next32() uint32 { return r.step()<<1 ^ r.step()>>7 }
