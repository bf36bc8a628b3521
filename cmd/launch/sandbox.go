package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/run/records"
	"egressd/sandbox"
)

const sandboxHelp = `launch sandbox looks after sandboxes that have a name.

  launch --name dev --allow api.example.com -- make      run, and keep the record
  launch sandbox exec [-d] NAME -- PROGRAM [ARGUMENT...]
                           run in it again, with the flags that it was made with;
                           -d in the background: prints the process's name
  launch sandbox ls        the sandboxes
  launch sandbox ps [NAME] what runs, and what ran
  launch sandbox logs [-f] NAME [PROCESS]
                           what a process printed (the last one); -f: what it prints
  launch sandbox wait NAME PROCESS
                           wait for its end; its exit status
  launch sandbox kill NAME PROCESS
  launch sandbox stop NAME end all that runs in it
  launch sandbox rm [-f] NAME
                           forget it; -f: stop it first
Where the tier has it (vercel)
  launch sandbox cp NAME:PATH LOCAL, or LOCAL NAME:PATH
                           copy files and directories; a slash at the end: into it
  launch sandbox snapshot NAME
                           keep the disk; stops the sandbox. --list lists what is kept
  launch sandbox restore NAME SNAPSHOT
                           begin with it next time
  launch sandbox port NAME PORT
                           where a published port is reached

--json with ls, ps and logs prints JSON Lines.
`

// boxCommand is one command of launch sandbox. usage is what stands after its
// name.
type boxCommand struct {
	name, usage string
	run         func(c *boxCall) error
	flags       func(o *boxOptions, fs *flag.FlagSet)
	least, most int // operands
}

// boxOptions are the flags of all of them.
type boxOptions struct {
	json, follow, detach, force, list bool

	stream, workdir, timeout string
	env                      []string
}

// boxCall is one call of launch sandbox.
type boxCall struct {
	*launcher
	store    *records.Store
	opts     boxOptions
	operands []string
	code     int // exit status, when there is no error
}

func boxCommands() []boxCommand {
	asJSON := func(o *boxOptions, fs *flag.FlagSet) { fs.BoolVar(&o.json, "json", false, "print JSON Lines") }
	return []boxCommand{
		{"ls", "[--json]", (*boxCall).list, asJSON, 0, 0},
		{"ps", "[--json] [NAME]", (*boxCall).processes, asJSON, 0, 1},
		{"logs", "[-f] [--json] [--stream stdout|stderr] NAME [PROCESS]", (*boxCall).logs, func(o *boxOptions, fs *flag.FlagSet) {
			asJSON(o, fs)
			fs.BoolVar(&o.follow, "f", false, "go on until the process ends")
			fs.StringVar(&o.stream, "stream", "", "only this `OUTPUT`: stdout or stderr")
		}, 1, 2},
		{"wait", "[--timeout TIME] NAME PROCESS", (*boxCall).wait, func(o *boxOptions, fs *flag.FlagSet) {
			fs.StringVar(&o.timeout, "timeout", "", "wait this `TIME` at most (5m)")
		}, 2, 2},
		{"exec", "[-d] [--env NAME[=VALUE]] [--workdir DIR] [--timeout TIME] NAME -- PROGRAM [ARGUMENT...]", (*boxCall).exec, func(o *boxOptions, fs *flag.FlagSet) {
			fs.BoolVar(&o.detach, "d", false, "run in the background")
			fs.Func("env", "pass this variable on, or set it: `NAME[=VALUE]`", func(s string) error { o.env = append(o.env, s); return nil })
			fs.StringVar(&o.workdir, "workdir", "", "run in this `DIR`")
			fs.StringVar(&o.timeout, "timeout", "", "end the run after this `TIME`")
		}, 2, 1 << 20},
		{"kill", "NAME PROCESS", (*boxCall).kill, nil, 2, 2},
		{"cp", "NAME:PATH LOCAL, or LOCAL NAME:PATH", (*boxCall).copy, nil, 2, 2},
		{"snapshot", "[--list] NAME", (*boxCall).snapshot, func(o *boxOptions, fs *flag.FlagSet) {
			fs.BoolVar(&o.list, "list", false, "list the snapshots, the newest first")
		}, 1, 1},
		{"restore", "NAME SNAPSHOT", (*boxCall).restore, nil, 2, 2},
		{"port", "NAME PORT", (*boxCall).port, nil, 2, 2},
		{"stop", "NAME", (*boxCall).stop, nil, 1, 1},
		{"rm", "[-f] NAME", (*boxCall).remove, func(o *boxOptions, fs *flag.FlagSet) {
			fs.BoolVar(&o.force, "f", false, "stop it first")
		}, 1, 1},
	}
}

// boxNames are what these commands are called.
func boxNames() []string {
	var names []string
	for _, c := range boxCommands() {
		names = append(names, c.name)
	}
	return names
}

// boxFlags are the flags of all of them.
func boxFlags() *flag.FlagSet {
	all := flag.NewFlagSet("launch sandbox", flag.ContinueOnError)
	for _, c := range boxCommands() {
		if c.flags == nil {
			continue
		}
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		c.flags(new(boxOptions), fs)
		fs.VisitAll(func(f *flag.Flag) {
			if all.Lookup(f.Name) == nil {
				all.Var(f.Value, f.Name, f.Usage)
			}
		})
	}
	return all
}

// sandbox runs one command of launch sandbox.
func (l *launcher) sandbox(args []string) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return l.Print(sandboxHelp)
	}
	if args[0] == background {
		return l.inBackground(args[1:])
	}
	for _, c := range boxCommands() {
		if c.name == args[0] {
			return l.boxCommand(c, args[1:])
		}
	}
	return l.Fail(cli.ExitUsage, fmt.Errorf("sandbox has no command %q\nsee launch sandbox help", args[0]))
}

func (l *launcher) boxCommand(c boxCommand, args []string) int {
	call := &boxCall{launcher: l}
	fs := flag.NewFlagSet("launch sandbox "+c.name, flag.ContinueOnError)
	if c.flags != nil {
		c.flags(&call.opts, fs)
	}
	fs.SetOutput(l.Stderr)
	fs.Usage = func() {}
	usage := "launch sandbox " + c.name + " " + c.usage
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return l.Print(usage + "\n")
	case err != nil:
		return cli.ExitUsage // told by the flag package
	}
	call.operands = fs.Args()
	if len(call.operands) > 1 && call.operands[1] == "--" {
		call.operands = append(call.operands[:1:1], call.operands[2:]...)
	}
	if n := len(call.operands); n < c.least || n > c.most {
		return l.Fail(cli.ExitUsage, errors.New("write: "+usage))
	}
	var err error
	if call.store, err = l.store(); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	defer call.store.Close()
	if err := c.run(call); err != nil {
		code := cli.ExitNo
		if capability := (*sandbox.CapabilityError)(nil); errors.As(err, &capability) {
			code = cli.ExitUsage
		}
		return l.Fail(max(code, call.code), err)
	}
	return call.code
}

// interrupted reports a context that ends when somebody asks this command to
// end.
func interrupted() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// box finds the sandbox that the first operand names.
func (c *boxCall) box() (records.Sandbox, error) {
	b, err := c.store.Sandbox(c.operands[0])
	if errors.Is(err, records.ErrNotFound) {
		return b, fmt.Errorf("there is no sandbox %s\nsee launch sandbox ls", c.operands[0])
	}
	return b, err
}

// process finds the process that the second operand names; without one, the
// last that was started.
func (c *boxCall) process() (records.Process, error) {
	if _, err := c.box(); err != nil {
		return records.Process{}, err
	}
	if len(c.operands) > 1 {
		p, err := c.store.Process(c.operands[0], c.operands[1])
		if errors.Is(err, records.ErrNotFound) {
			return p, fmt.Errorf("sandbox %s has no process %s\nsee launch sandbox ps %s", c.operands[0], c.operands[1], c.operands[0])
		}
		return p, err
	}
	all, err := c.store.Processes(c.operands[0])
	if len(all) == 0 {
		return records.Process{}, errors.Join(fmt.Errorf("nothing has run in sandbox %s", c.operands[0]), err)
	}
	return all[len(all)-1], nil
}

// commandLine is what was run, for people.
func commandLine(p records.Process) string {
	return strings.Join(append([]string{p.Command}, p.Args...), " ")
}
