package state

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/internal/shell/vars"
)

// Shell is one shell or subshell. One goroutine owns it.
type Shell struct {
	Session *Session
	Program *Program
	Proc    *proc.Proc
	Ctx     context.Context //nolint:containedctx // a shell lives exactly as long

	Vars     vars.Table
	Options  options.Set
	Params   Params
	Commands Commands
	FDs      Descriptors
	Dir      Directory
	Traps    Traps
	Jobs     proc.Jobs

	Control
	Place
	Work Work
}

// Params is the positional parameters, and parameters that commands leave
// behind.
type Params struct {
	List    []string // $1 and on
	Given   bool     // by set, since the last source began
	Last    string   // $_: the last argument of the last command
	OptChar int      // getopts: index in the current word
}

// Commands is what the first word of a command can mean, besides the commands
// of the session.
type Commands struct {
	Funcs     map[string]*Function
	Aliases   map[string]string
	AliasView map[string]string // the aliases that this line was read with
	Expanding map[string]bool   // aliases that are being expanded
	Hashed    map[string]string // paths that hash remembers
	Disabled  map[string]bool   // builtins that enable -n turned off
	Running   string            // the builtin that writes, for its messages
}

// Descriptors is the open files of a shell.
type Descriptors struct {
	Open        map[int]*stream.File
	Substituted []int // ends of process substitutions, closed after their command
}

// Directory is the working directory and the file mode mask.
type Directory struct {
	Path  string   // absolute; it can contain links
	Stack []string // of pushd, without Path
	Umask uint32
}

// Mask is the umask as a file mode.
func (d *Directory) Mask() fs.FileMode { return fs.FileMode(d.Umask) }

// Traps is the actions of trap, by the name of their signal or event.
type Traps struct {
	Actions   map[string]string // "": ignored
	Inherited bool              // from the parent: printed by trap -p, but not run
	Running   int               // number of DEBUG, ERR and RETURN traps being run
	Pending   map[string]bool   // signals that came while a command ran
}

// Work counts towards the limits, and caches the last regular expression.
type Work struct {
	Calls int   // nesting of functions, substitutions and scripts
	Tree  int   // nesting of lists and expressions
	Sums  int   // nesting of expressions in subscripts
	Steps int   // of patterns, not yet reported to the budget
	Held  int64 // bytes that variables hold
	Regex *Regex
}

// Control is the exit status, and what break, return, exit and set -e need.
type Control struct {
	Status      int
	PipeStatus  []int
	SubstStatus int // of the last command substitution of this command; -1: none
	Flow        Flow
	Levels      int // loops still to be left by break or continue
	Loops       int // nesting of loops
	NoErrExit   int // if above 0, a failure does not count for set -e and the ERR trap
	RedirFailed bool
}

// Flow says whether commands are being left, and up to where.
type Flow byte

const (
	GoesOn Flow = iota
	Breaks
	Continues
	Returns
	Exits
)

// Place is the position of the shell in its script.
type Place struct {
	Unit      *Unit
	Line      int
	LineShift int // correction of line numbers in a process substitution
	Frames    []Frame
	Subshells int
	Current   *syntax.Stmt
	Trapped   string // $BASH_COMMAND while a trap runs
}

// Unit is a parsed text. Positions in its tree are positions in it.
type Unit struct {
	Name string // BASH_SOURCE of what it defines
	Text string
	Base int // lines before its first
}

// Frame is one call on the stack.
type Frame struct {
	Name     string
	Source   string
	CallLine int
	Function bool // a function; otherwise a script run by source
}

// InFunction reports whether a function runs.
func (p *Place) InFunction() bool {
	return slices.ContainsFunc(p.Frames, func(f Frame) bool { return f.Function })
}

// New makes a shell that has the variables and functions of env and nothing
// else. cancel ends ctx.
func New(ctx context.Context, cancel context.CancelCauseFunc, s *Session, parent *proc.Proc, env []string) *Shell {
	p := s.Procs.New(parent, cancel)
	now := s.Now()
	sh := &Shell{
		Session: s, Ctx: ctx, Proc: p, Program: &Program{PID: p.PID, Base: ctx},
		Options:  options.Default(),
		Params:   Params{Last: "bash"},
		Commands: Commands{Funcs: map[string]*Function{}, Aliases: map[string]string{}, Hashed: map[string]string{}},
		FDs:      Descriptors{Open: map[int]*stream.File{}},
		Dir:      Directory{Path: "/", Umask: 0o022},
		Traps:    Traps{Actions: map[string]string{}},
		Control:  Control{SubstStatus: -1},
		Place:    Place{Line: 1},
	}
	if parent != nil {
		sh.Program.ParentPID = parent.PID
	}
	sh.Vars = vars.New(sh, now)
	sh.Vars.Random.Seed(uint64(now.UnixNano()) ^ uint64(p.PID))
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		if name, found := strings.CutPrefix(k, "BASH_FUNC_"); found && strings.HasSuffix(name, "%%") {
			sh.importFunction(strings.TrimSuffix(name, "%%"), v)
			continue
		}
		if vars.ValidName(k) && k != "_" {
			sh.Vars.Scope.Vars[k] = &vars.Variable{Str: v, IsSet: true, Exported: true}
		}
	}
	return sh
}

// Clone makes a subshell with its own process, which ends with sh at the
// latest. The caller releases it.
func (sh *Shell) Clone() *Shell { return sh.cloneUnder(sh.Ctx) }

// CloneJob makes a subshell that may outlive sh: it ends with the program.
func (sh *Shell) CloneJob() *Shell { return sh.cloneUnder(sh.Program.Base) }

func (sh *Shell) cloneUnder(ctx context.Context) *Shell {
	c := *sh
	c.Vars = sh.Vars.Clone(&c)
	c.Options = sh.Options.Clone()
	c.Params.List = slices.Clone(sh.Params.List)
	c.Commands.Funcs = maps.Clone(sh.Commands.Funcs)
	c.Commands.Aliases = maps.Clone(sh.Commands.Aliases)
	c.Commands.Expanding = maps.Clone(sh.Commands.Expanding)
	c.Commands.Hashed = maps.Clone(sh.Commands.Hashed)
	c.Commands.Disabled = maps.Clone(sh.Commands.Disabled)
	c.FDs = Descriptors{Open: make(map[int]*stream.File, len(sh.FDs.Open))}
	for n, f := range sh.FDs.Open {
		c.FDs.Open[n] = f.Dup()
	}
	c.Dir.Stack = slices.Clone(sh.Dir.Stack)
	c.Traps.Actions, c.Traps.Inherited, c.Traps.Pending = maps.Clone(sh.Traps.Actions), true, nil
	c.Jobs = sh.Jobs.Clone()
	c.PipeStatus = slices.Clone(sh.PipeStatus)
	c.Frames = slices.Clone(sh.Frames)
	c.Subshells++
	c.Loops = 0
	ctx, cancel := context.WithCancelCause(ctx)
	c.Ctx, c.Proc = ctx, sh.Session.Procs.New(sh.Proc, cancel)
	for _, action := range c.Traps.Actions {
		if action == "" {
			c.PublishTraps()
			break
		}
	}
	c.Vars.Random.Mix(c.Proc.PID)
	return &c
}

// Release closes the descriptors and ends the process of a shell.
func (sh *Shell) Release() {
	for n, f := range sh.FDs.Open {
		f.Close()
		delete(sh.FDs.Open, n)
	}
	sh.Session.Procs.Ended(sh.Proc)
	sh.Proc.Cancel(nil)
}

// PublishTraps lets kill see what is trapped.
func (sh *Shell) PublishTraps() {
	t := make(map[string]string, len(sh.Traps.Actions))
	for k, v := range sh.Traps.Actions {
		if v == "" || !sh.Traps.Inherited {
			t[k] = v
		}
	}
	sh.Proc.Trapped.Store(&t)
}
