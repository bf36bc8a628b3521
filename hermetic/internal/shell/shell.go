// Package shell is the language of the hermetic tier: bash, without a process.
//
// The parser is mvdan.cc/sh/v3/syntax; the tree is run here, because what
// bash promises about descriptors, traps, jobs, arrays, bytes and errors cannot
// be put on another interpreter from outside, and because an interpreter that
// knows no file, user, process or clock of the host has none to reach. Files
// are vfs names, pipes are memory, processes are goroutines with a number.
package shell

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// Config is one session of the shell.
type Config struct {
	Name    string   // $0: "bash" or "sh"
	Args    []string // $1 and on
	Options []string // as for set: "-e", "-u", "-o", "pipefail"
	Dir     string   // working directory inside, absolute
	Env     []string // KEY=VALUE

	Stdin          *os.File // nil: empty
	Stdout, Stderr io.Writer
	Terminals      [3]bool // which of the three test -t is to take for terminals

	Commands command.Table
	// Session's FS, Budget, Now, Proxy and Roots are set; Exec and Find are made
	// by Run.
	Session *command.Session
}

// Run runs script and reports its exit status: 2 for a syntax error, 126 when a
// limit was met (the error is its *limits.Exceeded; nothing was printed about
// it). It returns after every job has ended or been given up, ctx being done.
func Run(ctx context.Context, c Config, script string) (int, error) {
	s := &session{table: c.Commands, began: c.Session.Now(), pids: firstPID - 1}
	shared := *c.Session
	shared.Exec = s.exec
	shared.Find = func(dir, name string) (string, bool) { return s.lookPath(dir, name, defaultPath) }
	s.Session = &shared
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.busy.Wait()

	mine, end := context.WithCancelCause(ctx)
	sh := s.newShell(mine, end, nil, c.Env)
	sh.run.base = ctx
	sh.run.arg0, sh.params = c.Name, c.Args
	sh.run.posix = path.Base(c.Name) == "sh"
	if sh.run.arg0 == "" {
		sh.run.arg0 = "bash"
	}
	sh.dir = c.Dir
	lock := &sync.Mutex{}
	for n, f := range []*stream.File{
		stream.Reader(c.Stdin),
		stream.Writer(c.Stdout, lock, c.Session.Budget.Output),
		stream.Writer(c.Stderr, lock, c.Session.Budget.Output),
	} {
		if c.Terminals[n] {
			f.AsTerminal()
		}
		sh.setFD(n, f)
	}
	sh.initVars()
	if !sh.setOptions(c.Options) {
		return 2, nil
	}
	sh.opts |= optCommand
	status := sh.subshell(func() { sh.runText(script, commandUnit) })
	s.busy.Wait()
	if cause := s.Budget.Cause(); cause != nil {
		return 126, cause
	}
	return status, nil
}

const defaultPath = "/usr/bin:/bin"

// newShell makes a shell with its variables from env and nothing else.
func (s *session) newShell(ctx context.Context, cancel context.CancelCauseFunc, parent *proc, env []string) *shell {
	p := s.newProc(parent, cancel)
	sh := &shell{
		ses: s, ctx: ctx, proc: p, run: &runInfo{pid: p.pid, base: ctx},
		scope: &scope{vars: map[string]*variable{}}, funcs: map[string]*function{}, aliases: map[string]string{},
		hashed: map[string]string{}, fds: map[int]*stream.File{}, umask: 0o022, substEnded: -1, dir: "/",
		shopts: defaultShopts(), traps: map[string]string{}, line: 1, lastArg: "bash", started: s.Now(),
	}
	if parent != nil {
		sh.run.ppid = parent.pid
	}
	sh.opts = optHashAll | optInteractiveComments
	sh.random.seed(uint64(s.Now().UnixNano()) ^ uint64(p.pid))
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		if name, found := strings.CutPrefix(k, "BASH_FUNC_"); found && strings.HasSuffix(name, "%%") {
			sh.importFunction(strings.TrimSuffix(name, "%%"), v)
			continue
		}
		if validName(k) && k != "_" {
			sh.scope.vars[k] = &variable{str: v, isSet: true, exported: true}
		}
	}
	return sh
}

// initVars sets what a shell has without an environment.
func (sh *shell) initVars() {
	set := func(name, val string, exported bool) {
		if v := sh.scope.vars[name]; v == nil {
			sh.scope.vars[name] = &variable{str: val, isSet: true, exported: exported}
		}
	}
	set("PATH", defaultPath, true)
	set("HOME", "/", true)
	set("HOSTNAME", "localhost", false)
	set("SHELL", "/bin/bash", false)
	sh.scope.vars["IFS"] = &variable{str: " \t\n", isSet: true}
	sh.scope.vars["OPTIND"] = &variable{str: "1", isSet: true}
	set("OPTERR", "1", false)
	set("PS4", "+ ", false)
	if sh.run.posix {
		set("PPID", itoa(int64(sh.run.ppid)), false)
	}
	set("BASH", "/bin/bash", false)
	set("BASH_VERSION", bashVersion, false)
	sh.scope.vars["BASH_VERSINFO"] = &variable{
		kind: indexedVar, isSet: true, readonly: true,
		list: listOf([]string{"5", "2", "15", "1", "release", "x86_64-pc-linux-gnu"}),
	}
	set("OSTYPE", "linux-gnu", false)
	set("HOSTTYPE", "x86_64", false)
	set("MACHTYPE", "x86_64-pc-linux-gnu", false)
	set("TERM", "dumb", false)
	sh.initDir()
	level := int64(1)
	if v := sh.scope.vars["SHLVL"]; v != nil {
		level = decimal(v.str) + 1
	}
	sh.scope.vars["SHLVL"] = &variable{str: itoa(level), isSet: true, exported: true}
}

func decimal(s string) int64 {
	var n int64
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1<<30; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}

// initDir believes $PWD when it is another name of the working directory.
func (sh *shell) initDir() {
	if sh.dir == "" {
		sh.dir = "/"
	}
	if v := sh.scope.vars["PWD"]; v != nil && path.IsAbs(v.str) && path.Clean(v.str) == v.str {
		a, errA := sh.ses.FS.Resolve(v.str)
		b, errB := sh.ses.FS.Resolve(sh.dir)
		if errA == nil && errB == nil && a == b {
			sh.dir = v.str
		}
	}
	sh.scope.vars["PWD"] = &variable{str: sh.dir, isSet: true, exported: true}
	if sh.scope.vars["OLDPWD"] == nil {
		sh.scope.vars["OLDPWD"] = &variable{exported: true}
	}
}

func (sh *shell) mask() fs.FileMode { return fs.FileMode(sh.umask) }

func (s *session) tooDeep(most int64) {
	s.Budget.Exceed(&limits.Exceeded{Name: "calls", Limit: most, What: "functions, substitutions and scripts ran inside each other"})
}
