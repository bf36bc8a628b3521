package run

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/agents"
	"egressd/internal/run/ledger"
	"egressd/internal/run/microvm"
	"egressd/internal/run/script"
	"egressd/policy"
	"egressd/sandbox/process"
)

// TierProcess is the tier of ordinary programs. The others are script.Tier and
// microvm.Tier.
const TierProcess = "process"

// Values of --isolation.
const (
	isolationNetns = "netns"
	isolationEnv   = "env"
)

// Options are what the command line of a run says. Flags sets the defaults: the
// zero Options are not valid.
type Options struct {
	Argv    []string          // the program and its arguments, or those of a script
	Policy  policyflags.Flags // what may leave
	Program Program           // how the program runs
	Report  Report            // what is recorded and printed
	Keeping Keeping           // --name

	Agent     string // a kind of agent that Argv was made for; "": Argv is as it was typed
	Tier      string
	Isolation string // of the process tier
	Daemon    string // --egressd
	Script    script.Options
	MicroVM   microvm.Options

	NoProject bool // leave policy files out that nobody named

	Order *Order // of a run that a contract orders; nil: a person typed it

	given  []string // names of the flags that were given
	limits []string // of --limit, which tiers read in their own ways
}

// Order is what a contract adds to a run.
type Order struct {
	Ledger  *ledger.Ledger // the record that the run goes to; the caller ends it
	Ceiling *policy.Policy // of the machine's operator, asked besides the contract's; nil: there is none
	Output  *os.File       // takes what the program prints; its standard input is empty
}

// Program is how the program runs.
type Program struct {
	Env     policyflags.List // NAME or NAME=VALUE each
	Dir     string           // ""; the current one
	Timeout time.Duration    // zero: none
	User    string           // "": as launch, or the user behind sudo
	Nested  bool
	Limits  process.Limits

	OverlayTo  string // --overlay, and a directory that keeps the changes; "": none
	OnReplaced string // onReplacedEnd or onReplacedContinue
	Publish    []process.Publish
	HostPorts  []process.HostPort
}

// Report is what is recorded and printed about a run.
type Report struct {
	Events    string // a file, "-" for the standard output, or "" for none
	Learn     string // a file, or "" for none
	Receipt   string // a file, or "" for none
	Key       string // that signs the receipt, as ledger.Keys.Open has it
	Approve   bool
	Notify    bool // tell of each refusal on the standard error, at once
	Watch     bool // tell of each decision on the standard error, at once
	NoRecord  bool // keep no record for launch logs
	Quiet     bool
	Color     cli.ColorMode
	NoSummary bool
	JSON      bool // the summary is one line of JSON
}

// Keeping is what the command line says about a sandbox with a name.
type Keeping struct {
	Name string   // "": it has none, and nothing is kept
	Raw  []string // the flags of the run as they were typed
	Mode string   // records.Foreground (also "") or records.Background

	// Announce, unless nil, gets the ID of the process in one line and is closed.
	// The program then has no standard streams.
	Announce *os.File
}

// Flags defines the flags of a run, which set o. It is the one table of them.
func (o *Options) Flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	o.Policy.Register(fs)
	o.Policy.RegisterFiles(fs)
	o.Policy.RegisterUpstream(fs)
	RegisterNoProject(fs, &o.NoProject)
	fs.StringVar(&o.Report.Events, "events", "", "append every decision to this `FILE` as JSON Lines (- is the standard output)")
	fs.StringVar(&o.Isolation, "isolation", isolationNetns, "`MODE`: netns, or env (proxy variables only: advisory)")
	fs.StringVar(&o.Tier, "tier", TierProcess, "sandbox `TIER`: process; hermetic (shell scripts alone, without processes and sockets); vercel (a microVM at Vercel)")
	fs.StringVar(&o.Agent, "agent", "", "run this agent `NAME` with the prompt that follows: "+strings.Join(agents.Names(), ", "))
	o.Script.Register(fs)
	fs.Var(&o.Program.Env, "env", "pass this variable on, or set it: `NAME[=VALUE]`")
	fs.StringVar(&o.Keeping.Name, "name", "", "keep a record of this sandbox under a `NAME`: see launch sandbox")
	fs.Func("limit", "bound what the run may take: `NAME=N[K|M|G]`; the names are the tier's", func(s string) error {
		o.limits = append(o.limits, s)
		return nil
	})
	o.MicroVM.Register(fs)
	fs.StringVar(&o.Program.Dir, "workdir", "", "run in this `DIR`")
	fs.Func("timeout", "end the run after this `TIME` (90, 90s, 10m); exit 124", o.setTimeout)
	fs.Func("publish", "let the host's loopback reach a server inside: `[HOST:]PORT`", o.setPublish)
	fs.Func("host-port", "let the inside reach this `PORT` of the host's loopback as host.internal; localhost:PORT: as localhost, too", o.setHostPort)
	fs.Var(&o.Policy.Upstreams, "dns-upstream", "resolve names with this `SERVER` (1.1.1.1, tcp://, tls://)")
	fs.StringVar(&o.Report.Learn, "learn", "", "write the smallest policy that would have allowed this run to this new `FILE`")
	fs.StringVar(&o.Report.Receipt, "receipt", "", "write a signed receipt of the run to this new `FILE`: see launch verify")
	fs.StringVar(&o.Report.Key, "receipt-key", "", "sign the receipt with this `KEY`: a file, command:PROGRAM, or ssh-agent:FINGERPRINT")
	fs.BoolVar(&o.Report.Approve, "approve", false, "ask on the terminal about what no rule covers")
	fs.BoolVar(&o.Program.Nested, "nested", false, "let the program make sandboxes of its own inside (bwrap, Chromium's); always on for Codex")
	fs.StringVar(&o.Program.OverlayTo, "overlay-to", "", "as --overlay, and keep the changes in this new `DIR` for launch apply")
	fs.StringVar(&o.Program.OnReplaced, "on-replaced", onReplacedEnd, "`WHAT` becomes of a run when policy, events or launcher are replaced on this machine meanwhile: end, or continue")
	fs.StringVar(&o.Daemon, "egressd", "", "let the egressd that listens at `unix:PATH` serve the sandbox; its policy is a ceiling")
	fs.StringVar(&o.Program.User, "user", "", "as root: run the program as this user `NAME`")
	fs.Func("notify", "tell of each refusal at once, in a line on `stderr`", o.setNotify)
	fs.BoolVar(&o.Report.Watch, "watch", false, "tell of each decision at once, in a line on the standard error")
	fs.BoolVar(&o.Report.NoRecord, "no-record", false, "keep no record of this run for launch logs and launch why")
	fs.Var(&o.Report.Color, "color", "colour the summary: `WHEN` is auto, always or never")
	fs.BoolVar(&o.Report.JSON, "json", false, "print the summary at the end as one line of JSON, on the standard error")
	fs.BoolVar(&o.Report.Quiet, "quiet", false, "print errors only")
	fs.BoolVar(&o.Report.NoSummary, "no-summary", false, "print no summary at the end")
	return fs
}

// Parse reads a command line. The error is flag.ErrHelp if it asks for help.
func (o *Options) Parse(args []string) error {
	fs := o.Flags()
	if err := fs.Parse(args); err != nil {
		return cli.MeantFlag(fs, err)
	}
	o.Argv = fs.Args()
	o.Keeping.Raw = args[:len(args)-len(o.Argv)]
	fs.Visit(func(f *flag.Flag) { o.given = append(o.given, f.Name) })
	if slices.Contains(o.given, "agent") {
		return o.setAgent()
	}
	if len(args) > 0 && len(o.Argv) == len(args) {
		word := cli.Safe(args[0])
		return fmt.Errorf("%q is not a command of launch: to run a program, write launch -- %s", word, word)
	}
	return nil
}

// Plain reports whether the run is one for which an init can be started before the
// flags are read: see cmd/launch/ahead.
func (o *Options) Plain() bool {
	return o.Tier == TierProcess && o.Isolation == isolationNetns && o.Program.User == "" && len(o.limits) == 0 &&
		len(o.Program.Publish)+len(o.Program.HostPorts) == 0
}

// setAgent makes the command line of an agent from a prompt.
func (o *Options) setAgent() error {
	if len(o.Argv) != 1 {
		return errors.New(`--agent takes one prompt, in quotes: launch --agent claude-code "fix the tests"`)
	}
	self, err := os.Executable()
	if err == nil {
		o.Argv, err = agents.Argv(o.Agent, o.Argv[0], self)
	}
	if err != nil {
		return fmt.Errorf("--agent: %w", err)
	}
	return nil
}

func (o *Options) setNotify(s string) error {
	if s != "stderr" {
		return errors.New("write --notify stderr: nothing else is notified")
	}
	o.Report.Notify = true
	return nil
}

func (o *Options) setTimeout(s string) (err error) {
	o.Program.Timeout, err = cli.ParseLimit(s)
	return err
}

func (o *Options) setPublish(s string) error {
	at, err := cli.ParseLoopback(s)
	if err != nil {
		return err
	}
	o.Program.Publish = append(o.Program.Publish, process.Publish{Host: at.Addr(), Port: at.Port()})
	return nil
}

func (o *Options) setHostPort(s string) error {
	portText, localhost := strings.CutPrefix(s, "localhost:")
	port, err := cli.ParsePort(portText)
	if err != nil {
		return err
	}
	o.Program.HostPorts = append(o.Program.HostPorts, process.HostPort{Port: port, Localhost: localhost})
	o.Policy.HostPorts = append(o.Policy.HostPorts, port)
	return nil
}

// saved lists what must be said again to run in the same sandbox: flags as
// --name=value, variables by name only, and nothing that is about one run.
func (k Keeping) saved() []string {
	fs := new(Options).Flags()
	raw := k.Raw
	var saved []string
	for len(raw) > 0 {
		arg := raw[0]
		raw = raw[1:]
		if arg == "--" {
			break
		}
		name, value, glued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		f := fs.Lookup(name)
		if f == nil {
			continue // cannot be: the command line was parsed
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			if !glued {
				value = "true"
			}
		} else if !glued && len(raw) > 0 {
			value, raw = raw[0], raw[1:]
		}
		switch name {
		case "name", "learn", "script", "adopt", "receipt", "receipt-key", "agent":
			continue
		case "env":
			value, _, _ = strings.Cut(value, "=")
		}
		saved = append(saved, "--"+name+"="+value)
	}
	return saved
}

var errNoProgram = errors.New("no program given: launch [flags] -- PROGRAM [ARGUMENT...]")
