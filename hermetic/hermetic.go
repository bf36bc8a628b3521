// Package hermetic runs bash scripts without processes and without sockets: the
// shell, and some hundred tools that scripts call, are Go functions over one
// directory.
//
//	s := hermetic.Session{Files: hermetic.Files{Dir: "."}, Stdout: os.Stdout, Stderr: os.Stderr}
//	result, err := s.Run(ctx, hermetic.Script{Text: `grep -rl func . | sort | head`})
//
// A script reaches nothing but what its Session holds: no file outside
// Files.Dir, no process, no variable of the caller's environment, and the network
// only through Dial. The interpreter does not confine the process it runs in. If
// scripts are hostile, confine that process as well.
package hermetic

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// Session is what a script has. Only Files.Dir must be set.
type Session struct {
	Files  Files
	Dir    string           // working directory inside, absolute; "" is "/"
	Env    []string         // KEY=VALUE; PATH, HOME and SHELL have defaults
	Limits limits.Limits    // zero fields are defaults
	Now    func() time.Time // nil: time.Now

	// Dial connects to an HTTP proxy, through which curl and wget reach
	// everything. Nil: there is no network, and both do not exist.
	Dial  func(ctx context.Context) (net.Conn, error)
	Roots []byte // PEM certificates that curl and wget trust

	Stdin          *os.File  // nil: empty
	Stdout, Stderr io.Writer // nil: discarded. Not written to at the same time
	Terminals      [3]bool   // which of the three a script sees as terminals

	Commands command.Table // more commands; no name may be one of ours
}

// Files says which files a script has.
type Files struct {
	Dir     string   // a directory of the host, which is "/" inside
	Overlay bool     // keep changes in memory: Dir stays as it is, and Result lists them
	Protect []string // names inside that are read-only, with all below them; .git always is
}

// Script is what to run.
type Script struct {
	Text    string
	Name    string   // $0; "": "bash". A last element "sh" selects POSIX mode
	Args    []string // $1 and on
	Options []string // as for set: "-e", "-o", "pipefail"
}

// Result is how a script ended.
type Result struct {
	Code     int          // exit status: 0 to 255
	Changes  []vfs.Change // what the overlay holds
	Unlisted error        // why Changes is empty though there may be some; nil: it is complete
}

// Exit statuses of a script that did not end by itself.
const (
	exitError = 125
	exitLimit = 126
	exitPipe  = 128 + 13 // as a shell reports SIGPIPE
)

// Run runs a script and returns when it and its jobs have ended, or soon after
// ctx has. The error is a *limits.Exceeded if a limit ended the script (its Code
// is 126), or says why nothing was run (125). A script that keeps writing to a
// closed pipe ends with 141 and without an error. Sessions may run several
// scripts, one after the other or at once; nothing but the files is shared.
func (s *Session) Run(ctx context.Context, script Script) (Result, error) {
	table, err := Commands(s.Dial != nil, s.Commands)
	if err != nil {
		return Result{Code: exitError}, err
	}
	ctx, budget, stop := limits.New(ctx, s.Limits)
	defer stop()
	fs, err := vfs.Open(vfs.Config{
		Dir: s.Files.Dir, Overlay: s.Files.Overlay, Protect: s.Files.Protect,
		Written: budget.Written, Memory: budget.Limits.Memory / 2,
	})
	if err != nil {
		return Result{Code: exitError}, fmt.Errorf("the workspace can't be opened: %s", command.Reason(err))
	}
	defer fs.Close()
	go watchMemory(ctx, budget)
	closed := &closedPipes{stop: stop}
	code, err := shell.Run(ctx, shell.Config{
		Name: script.Name, Args: script.Args, Options: script.Options, Dir: s.Dir, Env: s.Env,
		Stdin: s.Stdin, Stdout: closed.watch(s.Stdout), Stderr: closed.watch(s.Stderr), Terminals: s.Terminals,
		Commands: table, Session: s.session(fs, budget),
	}, script.Text)
	result := Result{Code: code & 0xff}
	if cause := budget.Cause(); cause != nil {
		result.Code, err = exitLimit, cause
	} else if closed.ended() {
		result.Code, err = exitPipe, nil
	} else if err != nil {
		result.Code = exitError
	}
	if s.Files.Overlay {
		result.Changes, result.Unlisted = fs.Changes()
	}
	return result, err
}

func (s *Session) session(fs *vfs.FS, budget *limits.Budget) *command.Session {
	c := &command.Session{FS: fs, Budget: budget, Now: s.Now, Proxy: s.Dial, Roots: s.Roots}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
