// Package named is the command line of launch sandbox: named sandboxes, and what is done with one.
//
//	commands = append(commands, named.Commands(l)...)
package named

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/sandboxes"
	"egressd/sandbox"
)

//go:embed named.txt
var help string

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands is launch sandbox.
func Commands(l *run.Launcher) []cli.Command {
	return []cli.Command{{Name: "sandbox", Run: launcher{l}.sandbox, Flags: allFlags, Words: names}}
}

// command is one command of launch sandbox.
type command struct {
	name, usage string // usage is what follows the name
	least, most int    // operands
	flags       func(c *call, fs *flag.FlagSet)
	run         func(c *call) (code int, err error)
}

// call is one call of such a command.
type call struct {
	*sandboxes.Set
	operands []string
	own      sandboxes.ExecOptions
	logs     sandboxes.LogOptions

	detach, terminal, force, list, json bool
	remote, running, yes                bool   // at the service
	drop, expires                       string // of snapshots
	changes                             []string
}

// operand reports operand n, or "" if there is none.
func (c *call) operand(n int) string {
	if n < len(c.operands) {
		return c.operands[n]
	}
	return ""
}

func (c *call) timeout(fs *flag.FlagSet, usage string) {
	fs.StringVar(&c.own.Timeout, "timeout", "", usage)
}

// anyNumber of operands.
const anyNumber = 1 << 20

func commands() []command {
	asJSON := func(c *call, fs *flag.FlagSet) { fs.BoolVar(&c.json, "json", false, "print JSON Lines") }
	return []command{
		{"ls", "[--json] [--remote]", 0, 0, func(c *call, fs *flag.FlagSet) {
			asJSON(c, fs)
			fs.BoolVar(&c.remote, "remote", false, "list what is in the project at Vercel, whosever it is")
		}, func(c *call) (int, error) {
			if c.remote {
				return 0, c.ListRemote(c.json)
			}
			return 0, c.List(c.json)
		}},
		{"prune", "[--running] [--yes]", 0, 0, func(c *call, fs *flag.FlagSet) {
			fs.BoolVar(&c.running, "running", false, "also what runs")
			fs.BoolVar(&c.yes, "yes", false, "do not ask")
		}, func(c *call) (int, error) { return 0, c.Prune(c.running, c.yes) }},
		{"ps", "[--json] [NAME]", 0, 1, asJSON, func(c *call) (int, error) { return 0, c.Processes(c.operand(0), c.json) }},
		{"logs", "[-f] [--json] [--stream stdout|stderr] NAME [PROCESS]", 1, 2, func(c *call, fs *flag.FlagSet) {
			asJSON(c, fs)
			fs.BoolVar(&c.logs.Follow, "f", false, "go on until the process ends")
			fs.StringVar(&c.logs.Stream, "stream", "", "only this `OUTPUT`: stdout or stderr")
		}, func(c *call) (int, error) {
			c.logs.JSON = c.json
			return c.Logs(c.operand(0), c.operand(1), c.logs)
		}},
		{"wait", "[--timeout TIME] NAME PROCESS", 2, 2, func(c *call, fs *flag.FlagSet) {
			c.timeout(fs, "wait this `TIME` at most (5m)")
		}, func(c *call) (int, error) { return c.Wait(c.operand(0), c.operand(1), c.own.Timeout) }},
		{"exec", "[-d | -t] [--env NAME[=VALUE]] [--workdir DIR] [--timeout TIME] NAME -- PROGRAM [ARGUMENT...]", 2, anyNumber, func(c *call, fs *flag.FlagSet) {
			fs.BoolVar(&c.detach, "d", false, "run in the background")
			fs.BoolVar(&c.terminal, "t", false, "fail unless the program gets a terminal")
			fs.Func("env", "pass this variable on, or set it: `NAME[=VALUE]`", func(s string) error { c.own.Env = append(c.own.Env, s); return nil })
			fs.StringVar(&c.own.Dir, "workdir", "", "run in this `DIR`")
			c.timeout(fs, "end the run after this `TIME`")
		}, func(c *call) (int, error) {
			switch {
			case c.detach && c.terminal:
				return 0, errors.New("-d and -t: what runs in the background has no terminal")
			case c.terminal:
				return c.Attended(c.operands[0], c.operands[1:], c.own)
			case c.detach:
				return 0, c.Detach(c.operands[0], c.operands[1:], c.own)
			}
			return c.Exec(c.operands[0], c.operands[1:], c.own)
		}},
		{"sh", "NAME", 1, 1, nil, func(c *call) (int, error) { return c.Attended(c.operand(0), []string{"sh"}, c.own) }},
		{"kill", "NAME PROCESS", 2, 2, nil, func(c *call) (int, error) { return 0, c.Kill(c.operand(0), c.operand(1)) }},
		{"cp", "NAME:PATH LOCAL, or LOCAL NAME:PATH", 2, 2, nil, func(c *call) (int, error) { return 0, c.Copy(c.operand(0), c.operand(1)) }},
		{"snapshot", "[--expires TIME] NAME, or --list NAME, or --rm SNAPSHOT NAME", 1, 1, func(c *call, fs *flag.FlagSet) {
			fs.BoolVar(&c.list, "list", false, "list the snapshots, the newest first")
			fs.StringVar(&c.drop, "rm", "", "remove this `SNAPSHOT`")
			fs.StringVar(&c.expires, "expires", "", "keep it for this `TIME` after its last use, as 7d, or never")
		}, func(c *call) (int, error) {
			switch {
			case c.drop != "" && !c.list && c.expires == "":
				return 0, c.DropSnapshot(c.operand(0), c.drop)
			case c.list && c.drop == "" && c.expires == "":
				return 0, c.Snapshots(c.operand(0))
			case c.list || c.drop != "":
				return cli.ExitUsage, errors.New("--list, --rm and --expires exclude each other")
			}
			return 0, c.Snapshot(c.operand(0), c.expires)
		}},
		{"set", "[--vcpus NUMBER] [--port PORT] [--tag NAME=VALUE] [--timeout TIME] [--keep-snapshots NUMBER] [--snapshot-expiry TIME] NAME", 1, 1, func(c *call, fs *flag.FlagSet) {
			whole := new(run.Options).Flags()
			for _, name := range []string{"vcpus", "port", "tag", "timeout", "keep-snapshots", "snapshot-expiry"} {
				fs.Func(name, whole.Lookup(name).Usage, func(s string) error {
					c.changes = append(c.changes, "--"+name+"="+s)
					return whole.Set(name, s)
				})
			}
		}, func(c *call) (int, error) { return 0, c.Change(c.operand(0), c.changes) }},
		{"restore", "NAME SNAPSHOT", 2, 2, nil, func(c *call) (int, error) { return 0, c.Restore(c.operand(0), c.operand(1)) }},
		{"port", "NAME PORT", 2, 2, nil, func(c *call) (int, error) { return 0, c.Port(c.operand(0), c.operand(1)) }},
		{"stop", "NAME", 1, 1, nil, func(c *call) (int, error) { return 0, c.Stop(c.operand(0)) }},
		{"rm", "[-f] NAME", 1, 1, func(c *call, fs *flag.FlagSet) {
			fs.BoolVar(&c.force, "f", false, "stop it first")
		}, func(c *call) (int, error) { return 0, c.Remove(c.operand(0), c.force) }},
	}
}

// names lists the commands of launch sandbox.
func names() []string {
	var out []string
	for _, c := range commands() {
		out = append(out, c.name)
	}
	return out
}

// allFlags are the flags of all of them.
func allFlags() *flag.FlagSet {
	all := flag.NewFlagSet("launch sandbox", flag.ContinueOnError)
	for _, c := range commands() {
		if c.flags == nil {
			continue
		}
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		c.flags(new(call), fs)
		fs.VisitAll(func(f *flag.Flag) {
			if all.Lookup(f.Name) == nil {
				all.Var(f.Value, f.Name, f.Usage)
			}
		})
	}
	return all
}

// sandbox runs one command of launch sandbox.
func (l launcher) sandbox(args []string) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return l.Print(help)
	}
	if args[0] == sandboxes.BackgroundCommand {
		return sandboxes.Background(l.Launcher, args[1:])
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return l.command(c, args[1:])
		}
	}
	return l.Fail(cli.ExitUsage, fmt.Errorf("sandbox has no command %q\nsee launch sandbox help", args[0]))
}

func (l launcher) command(c command, args []string) int {
	now := new(call)
	fs := flag.NewFlagSet("launch sandbox "+c.name, flag.ContinueOnError)
	if c.flags != nil {
		c.flags(now, fs)
	}
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	usage := "launch sandbox " + c.name + " " + c.usage
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return l.Print(usage + "\n")
	case err != nil:
		return l.Usage(cli.MeantFlag(fs, err))
	}
	now.operands = fs.Args()
	if len(now.operands) > 1 && now.operands[1] == "--" {
		now.operands = append(now.operands[:1:1], now.operands[2:]...)
	}
	if n := len(now.operands); n < c.least || n > c.most {
		return l.Fail(cli.ExitUsage, errors.New("write: "+usage))
	}
	var err error
	if now.Set, err = sandboxes.Open(l.Launcher); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	defer now.Close()
	code, err := c.run(now)
	if err == nil {
		return code
	}
	least := cli.ExitNo
	if capability := (*sandbox.CapabilityError)(nil); errors.As(err, &capability) {
		least = cli.ExitUsage
	}
	return l.Fail(max(least, code), err)
}
