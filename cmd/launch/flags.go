package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/records"
	"egressd/sandbox/process"
)

// options is what the command line of a run says.
type options struct {
	gate      policyflags.Flags
	env       policyflags.List
	publish   []process.Publish
	hostPorts []process.HostPort
	scripts   scripts
	keeping   keeping
	hosted    hosted
	given     []string // names of the flags that were given

	events, isolation, tier, workdir, learn, user, egressd string

	timeout time.Duration

	approve, nested, quiet, noSummary bool

	argv []string
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch", flag.ContinueOnError)
	o.gate.Register(fs)
	fs.StringVar(&o.events, "events", "", "append every decision to this `FILE` as JSON Lines (- is the standard output)")
	fs.StringVar(&o.isolation, "isolation", "netns", "`MODE`: netns, or env (proxy variables only: advisory)")
	fs.StringVar(&o.tier, "tier", tierProcess, "sandbox `TIER`: process; hermetic (shell scripts alone, without processes and sockets); vercel (a microVM at Vercel)")
	fs.StringVar(&o.scripts.file, "script", "", "hermetic tier: run this `FILE`; what follows -- are its arguments")
	fs.BoolVar(&o.scripts.overlay, "overlay", false, "hermetic tier: keep the script's changes out of the workspace, and report them")
	fs.Func("limit", "hermetic tier: bound what the script may use: `NAME=N[K|M|G]`", o.scripts.setLimit)
	fs.Var(&o.env, "env", "pass this variable on, or set it: `NAME[=VALUE]`")
	fs.StringVar(&o.keeping.name, "name", "", "keep a record of this sandbox under a `NAME`: see launch sandbox")
	o.hosted.register(fs)
	fs.StringVar(&o.workdir, "workdir", "", "run in this `DIR`")
	fs.Func("timeout", "end the run after this `TIME` (90, 90s, 10m); exit 124", o.setTimeout)
	fs.Func("publish", "let the host's loopback reach a server inside: `[HOST:]PORT`", o.setPublish)
	fs.Func("host-port", "let the inside reach this `PORT` of the host's loopback as host.internal; localhost:PORT: as localhost, too", o.setHostPort)
	fs.Var(&o.gate.Upstreams, "dns-upstream", "resolve names with this `SERVER` (1.1.1.1, tcp://, tls://)")
	fs.StringVar(&o.learn, "learn", "", "write the smallest policy that would have allowed this run to this new `FILE`")
	fs.BoolVar(&o.approve, "approve", false, "ask on the terminal about what no rule covers")
	fs.BoolVar(&o.nested, "nested", false, "let the program make sandboxes of its own inside (bwrap, Chromium's); Codex gets it unasked")
	fs.StringVar(&o.egressd, "egressd", "", "let the egressd that listens at `unix:PATH` serve the sandbox; its policy is a ceiling")
	fs.StringVar(&o.user, "user", "", "as root: run the program as this user `NAME`")
	fs.BoolVar(&o.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&o.noSummary, "no-summary", false, "print no summary at the end")
	return fs
}

const tierProcess = "process"

// validate checks what the flag package can't.
func (o *options) validate() error {
	if name := o.keeping.name; name != "" {
		if why := records.ValidName(name); why != "" {
			return fmt.Errorf("--name %q: %s", name, why)
		}
	}
	if o.tier != tierVercel {
		for _, name := range hostedFlags() {
			if slices.Contains(o.given, name) {
				return fmt.Errorf("--%s is for --tier vercel", name)
			}
		}
	}
	switch o.tier {
	case tierHermetic:
		return o.validateHermetic()
	case tierVercel:
		return o.validateVercel()
	case tierProcess:
		if name := o.scripts.flag(); name != "" {
			return fmt.Errorf("%s is for --tier hermetic", name)
		}
		return o.validateProcess()
	}
	return fmt.Errorf("--tier %q: process, hermetic or vercel", o.tier)
}

func (o *options) validateProcess() error {
	switch {
	case o.isolation != "netns" && o.isolation != "env":
		return fmt.Errorf("--isolation %q: netns or env", o.isolation)
	case o.isolation == "env" && len(o.publish)+len(o.hostPorts) > 0:
		return errors.New("--publish and --host-port are for --isolation netns: with env the program is on the host's loopback already")
	case o.egressd != "" && o.isolation == "env":
		return errors.New("--egressd is for --isolation netns: with env there are no doors to hand over")
	case o.egressd != "" && len(o.gate.Upstreams) > 0:
		return errors.New("--dns-upstream has no effect with --egressd, which resolves names itself: leave it out")
	case o.egressd != "" && socketPath(o.egressd) == "":
		return fmt.Errorf("--egressd %q: write unix:PATH, the daemon's control socket", o.egressd)
	case len(o.argv) == 0:
		return errors.New("no program given: launch [flags] -- PROGRAM [ARGUMENT...]")
	case o.argv[0] == "":
		return errors.New("the program's name is empty")
	}
	return nil
}

func (o *options) setTimeout(s string) (err error) {
	o.timeout, err = cli.ParseLimit(s)
	return err
}

func (o *options) setPublish(s string) error {
	at, err := cli.ParseLoopback(s)
	if err != nil {
		return err
	}
	o.publish = append(o.publish, process.Publish{Host: at.Addr(), Port: at.Port()})
	return nil
}

func (o *options) setHostPort(s string) error {
	portText, localhost := strings.CutPrefix(s, "localhost:")
	port, err := cli.ParsePort(portText)
	if err != nil {
		return err
	}
	o.hostPorts = append(o.hostPorts, process.HostPort{Port: port, Localhost: localhost})
	o.gate.HostPorts = append(o.gate.HostPorts, port)
	return nil
}
