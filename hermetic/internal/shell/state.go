package shell

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// session is what all shells of one Run share.
type session struct {
	*command.Session
	table command.Table
	began time.Time

	mu    sync.Mutex
	procs map[int]*proc
	pids  int
	busy  sync.WaitGroup // goroutines of all jobs and substitutions
	tasks int
}

// run is one shell program: the script of Run, or what sh, bash or a script
// file runs inside it. Its subshells share it.
type runInfo struct {
	arg0   string // $0
	script string // the file that is run; "" for -c and the standard input
	ppid   int
	pid    int
	posix  bool            // called as sh
	base   context.Context //nolint:containedctx // what its jobs live under
	dash   bool
}

// unit is a text that was parsed: positions in its tree are positions in it.
type unit struct {
	name string // BASH_SOURCE of what it defines
	text string
	base int // lines before its first
}

// frame is one call on the stack.
type frame struct {
	name     string
	source   string
	callLine int
	function bool
	params   []string
}

// function is one that a script defined.
type function struct {
	name     string
	body     *syntax.Stmt
	unit     *unit
	exported bool
	traced   bool
	readonly bool
}

// flow says that commands are being left, and up to where.
type flow byte

const (
	goesOn flow = iota
	breaks
	continues
	returns
	exits
)

// shell is one shell or subshell. One goroutine owns it.
type shell struct {
	ses  *session
	run  *runInfo
	proc *proc
	ctx  context.Context //nolint:containedctx // a shell lives exactly as long

	scope     *scope
	held      int64
	funcs     map[string]*function
	aliases   map[string]string
	hashed    map[string]string
	params    []string
	paramsSet bool // set gave them since the last source began
	opts      options
	shopts    map[string]bool
	fds       map[int]*stream.File
	dir       string
	umask     uint32

	status     int
	pipeStatus []int
	substEnded int // status of the last command substitution of this command; -1: none
	flow       flow
	levels     int // of break and continue

	unit      *unit
	line      int
	frames    []frame
	loops     int
	depth     int // of calls, as the limit counts them
	subshells int
	noErrExit int
	current   *syntax.Stmt
	trapped   string // what $BASH_COMMAND is while a trap runs
	dirStack  []string

	traps    map[string]string
	inherits bool // traps are the parent's, to be printed and not to be run
	inTrap   int
	pending  map[string]bool

	jobs        []*job
	lastJob     int // pid of $!
	nextJob     int
	procFDs     []int
	optChar     int
	random      rng
	started     time.Time
	lastArg     string
	running     string // the builtin that writes
	tree        int    // depth in lists and expressions
	sums        int    // depth of expressions in subscripts of expressions
	steps       int    // of patterns, not yet counted
	lineShift   int    // lines that a process substitution does not count
	redirFailed bool
	disabled    map[string]bool // builtins

	secondsBase int64
	plainNames  map[string]bool
	aliasView   map[string]string // the aliases that this line was read with
	aliasing    map[string]bool
	lastRegex   *lastRegex
}

// clone makes a subshell with its own process, which does not outlive sh.
func (sh *shell) clone() *shell { return sh.cloneUnder(sh.ctx) }

// cloneJob makes a subshell that may: it ends with the program.
func (sh *shell) cloneJob() *shell { return sh.cloneUnder(sh.run.base) }

func (sh *shell) cloneUnder(ctx context.Context) *shell {
	c := *sh
	c.scope = cloneScope(sh.scope)
	c.funcs = maps.Clone(sh.funcs)
	c.aliases = maps.Clone(sh.aliases)
	c.hashed = maps.Clone(sh.hashed)
	c.params = slices.Clone(sh.params)
	c.shopts = maps.Clone(sh.shopts)
	c.traps = maps.Clone(sh.traps)
	c.plainNames = maps.Clone(sh.plainNames)
	c.disabled = maps.Clone(sh.disabled)
	c.pipeStatus = slices.Clone(sh.pipeStatus)
	c.dirStack = slices.Clone(sh.dirStack)
	c.frames = slices.Clone(sh.frames)
	c.aliasing = maps.Clone(sh.aliasing)
	c.inherits = true
	c.jobs = slices.Clone(sh.jobs)
	for i, j := range c.jobs {
		k := *j
		k.foreign = true
		c.jobs[i] = &k
	}
	c.pending = nil
	c.subshells++
	c.loops = 0
	c.fds = make(map[int]*stream.File, len(sh.fds))
	for n, f := range sh.fds {
		c.fds[n] = f.Dup()
	}
	c.procFDs = nil
	ctx, cancel := context.WithCancelCause(ctx)
	c.ctx, c.proc = ctx, sh.ses.newProc(sh.proc, cancel)
	for _, action := range c.traps {
		if action == "" {
			c.tellTraps()
			break
		}
	}
	c.random.state ^= uint32(c.proc.pid) * 2654435761
	return &c
}

// release gives up what a subshell holds.
func (sh *shell) release() {
	for n, f := range sh.fds {
		f.Close()
		delete(sh.fds, n)
	}
	sh.ses.ended(sh.proc)
	sh.proc.cancel(nil)
}

// setFD gives descriptor n to f, which it owns from now on.
func (sh *shell) setFD(n int, f *stream.File) {
	if old := sh.fds[n]; old != nil {
		old.Close()
	}
	if f == nil {
		delete(sh.fds, n)
		return
	}
	sh.fds[n] = f
}

// Panics of this package carry one of these up to the command, the list or the
// shell that they end; none leaves Run.
type (
	// discard ends the commands up to the next line of the script.
	discard struct{ status int }
	// ended ends the shell.
	ended struct{ status int }
)

// exceed ends everything because of a limit.
func (sh *shell) exceed(e *limits.Exceeded) {
	sh.ses.Budget.Exceed(e)
	panic(ended{126})
}

// check ends the shell when its context has ended, and runs traps of signals
// that came.
func (sh *shell) check() {
	if sh.ctx.Err() != nil {
		panic(ended{sh.proc.endStatus()})
	}
	if sh.proc.signalled.Load() {
		sh.runPending()
	}
}

// deeper counts one level of calls; the caller takes it off again.
func (sh *shell) deeper() {
	sh.depth++
	if most := sh.ses.Budget.Limits.Calls; int64(sh.depth) > most {
		sh.exceed(&limits.Exceeded{Name: "calls", Limit: most, What: "functions, substitutions and scripts ran inside each other"})
	}
}

// prefix is how bash begins what it says about line n.
func (sh *shell) prefix() string {
	name := sh.run.arg0
	if n := len(sh.frames); n > 0 && sh.frames[n-1].source != "" {
		name = sh.frames[n-1].source
	}
	return fmt.Sprintf("%s: line %d: ", name, sh.line)
}

// errorf writes bash's "NAME: line N: text".
func (sh *shell) errorf(format string, args ...any) {
	sh.errText(sh.prefix() + fmt.Sprintf(format, args...) + "\n")
}

func (sh *shell) errText(s string) {
	sh.bound(2).Write([]byte(s)) //nolint:errcheck // there is nowhere to say so
}

// bound is descriptor n under the shell's context.
func (sh *shell) bound(n int) stream.Bound { return stream.Bound{Ctx: sh.ctx, File: sh.fds[n]} }

// discardf says what is wrong and ends the commands of this line with status 1.
func (sh *shell) discardf(format string, args ...any) {
	sh.errorf(format, args...)
	panic(discard{1})
}
