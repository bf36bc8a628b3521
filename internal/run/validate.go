package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"egressd/gate"
	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/agents"
	"egressd/internal/run/microvm"
	"egressd/internal/run/records"
	"egressd/internal/run/script"
	"egressd/policy/files"
)

// Validate checks what the flag package cannot: which flags go together. The error names
// the flag.
func (o *Options) Validate() error {
	if name := o.Keeping.Name; name != "" {
		if why := records.ValidName(name); why != "" {
			return fmt.Errorf("--name %q: %s", name, why)
		}
	}
	if o.Tier != microvm.Tier {
		for _, name := range microvm.FlagNames() {
			if slices.Contains(o.given, name) {
				return fmt.Errorf("--%s is for --tier vercel", name)
			}
		}
	}
	if o.Report.JSON && (o.Report.Quiet || o.Report.NoSummary) {
		return errors.New("--json is about the summary, which --quiet and --no-summary leave out")
	}
	if err := o.setLimits(); err != nil {
		return err
	}
	if err := errors.Join(o.validateAgent(), o.validateReceipt()); err != nil {
		return err
	}
	switch o.Tier {
	case TierProcess:
		return o.validateProcess()
	case script.Tier:
		return o.useless()
	case microvm.Tier:
		return o.validateMicroVM()
	}
	return fmt.Errorf("--tier %q: process, hermetic or vercel", o.Tier)
}

// validateAgent refuses an agent that a tier cannot run.
func (o *Options) validateAgent() error {
	switch {
	case o.Agent == "":
		return nil
	case o.Tier == script.Tier && o.Agent != agents.Command:
		return fmt.Errorf("--agent %s is for --tier process and vercel: a script runs no program", o.Agent)
	case o.Tier == microvm.Tier && o.Agent == agents.Mock:
		return fmt.Errorf("--agent %s is for --tier process: it is part of this launch, which is not sent", o.Agent)
	}
	return nil
}

// setLimits reads --limit as the tier does.
func (o *Options) setLimits() error {
	for _, s := range o.limits {
		var err error
		switch o.Tier {
		case TierProcess:
			err = o.Program.Limits.Set(s)
		case script.Tier:
			err = o.Script.Limits.Set(s)
		}
		if err != nil {
			return fmt.Errorf("--limit %s: %w", s, err)
		}
	}
	return nil
}

func (o *Options) validateProcess() error {
	p := o.Program
	if err := o.noScript(); err != nil {
		return err
	}
	switch {
	case o.Isolation != isolationNetns && o.Isolation != isolationEnv:
		return fmt.Errorf("--isolation %q: netns or env", o.Isolation)
	case o.Isolation == isolationEnv && o.fileFlag() != "":
		return fmt.Errorf("%s is for --isolation netns: with env nothing holds a program to files", o.fileFlag())
	case o.Isolation == isolationEnv && o.overlaid():
		return errors.New("--overlay is for --isolation netns: with env nothing holds a program to files")
	case o.Isolation == isolationEnv && len(p.Publish)+len(p.HostPorts) > 0:
		return errors.New("--publish and --host-port are for --isolation netns: with env the program is on the host's loopback already")
	case p.OnReplaced != onReplacedEnd && p.OnReplaced != onReplacedContinue:
		return fmt.Errorf("--on-replaced %q: end or continue", p.OnReplaced)
	case o.Isolation == isolationEnv && slices.Contains(o.given, "on-replaced"):
		return errors.New("--on-replaced is for --isolation netns: with env nothing is protected")
	case o.Isolation == isolationEnv && len(o.limits) > 0:
		return errors.New("--limit is for --isolation netns, which holds the program: with env nothing does; use ulimit, or systemd-run -p MemoryMax=")
	case o.Daemon != "" && o.Isolation == isolationEnv:
		return errors.New("--egressd is for --isolation netns: with env there are no doors to hand over")
	case o.Daemon != "" && len(o.Policy.Upstreams) > 0:
		return errors.New("--dns-upstream has no effect with --egressd, which resolves names itself: leave it out")
	case o.Daemon != "" && socketPath(o.Daemon) == "":
		return fmt.Errorf("--egressd %q: write unix:PATH, the daemon's control socket", o.Daemon)
	case len(o.Argv) == 0:
		return errNoProgram
	case o.Argv[0] == "":
		return errors.New("the program's name is empty")
	case o.Isolation == isolationNetns:
		return o.thisMachine()
	}
	return nil
}

// thisMachine refuses rules for names by which people mean a server of this machine:
// inside, they lead nowhere.
func (o *Options) thisMachine() error {
	for _, list := range o.Policy.Allow {
		for _, rule := range policyflags.Split(list) {
			host, port, _ := strings.Cut(rule, ":")
			given := slices.ContainsFunc(o.Policy.Hosts, func(h string) bool { return strings.HasPrefix(h, host+"=") })
			if _, err := cli.ParsePort(port); err != nil {
				port = "PORT"
			}
			switch {
			case given:
			case host == "localhost":
				return fmt.Errorf("--allow %s: inside, localhost is the sandbox's own; to reach a server of this machine, write --host-port localhost:%s", cli.Safe(rule), port)
			case host == "host.docker.internal" || host == gate.HostInternal:
				return fmt.Errorf("--allow %s: write --host-port %s, and let the program use %s:%s", cli.Safe(rule), port, gate.HostInternal, port)
			}
		}
	}
	return nil
}

func (o *Options) validateMicroVM() error {
	if err := errors.Join(o.useless(), o.noScript()); err != nil {
		return err
	}
	if err := o.MicroVM.Validate(o.Keeping.Name); err != nil {
		return err
	}
	if len(o.Argv) == 0 {
		return errNoProgram
	}
	return nil
}

// fileFlag reports the first flag about files that was given, "" without one.
func (o *Options) fileFlag() string {
	for _, name := range fileFlags() {
		if slices.Contains(o.given, name) {
			return "--" + name
		}
	}
	return ""
}

func fileFlags() []string { return []string{"write", "read", "hide", "home"} }

// filesHeld is an error if the policy has a files section and the tier cannot
// hold it.
func (o *Options) filesHeld(s files.Section) error {
	if s.IsZero() || o.Tier == microvm.Tier || o.Tier == TierProcess && o.Isolation == isolationNetns {
		return nil
	}
	tier, where := "--tier "+o.Tier, "files.home"
	if o.Tier == TierProcess {
		tier = "--isolation env"
	}
	for _, list := range s.Lists() {
		if len(list.Rules) > 0 {
			where = list.Rules[0].At
			break
		}
	}
	return fmt.Errorf("%s: %s cannot hold the files section of a policy: use --tier process, or a policy without one", where, tier)
}

// noScript refuses the flags of the hermetic tier.
func (o *Options) noScript() error {
	if name := o.Script.Given(); name != "" {
		return fmt.Errorf("%s is for --tier hermetic", name)
	}
	return nil
}

// useless reports the first flag that was given and has no meaning in the tier.
func (o *Options) useless() error {
	for _, f := range uselessFlags(o.Tier) {
		if slices.Contains(o.given, f.name) {
			return fmt.Errorf("--%s has no use with --tier %s: %s", f.name, o.Tier, f.why)
		}
	}
	return nil
}

// noFileRules is why a tier has no use for flags about files.
const noFileRules = "a script of the hermetic tier sees the directory that it was started in and nothing else; --overlay keeps its changes out"

// noUpstream is why the microVM has no use for flags about an upstream proxy.
const noUpstream = "the VM leaves from Vercel's network"

type uselessFlag struct{ name, why string }

func uselessFlags(tier string) []uselessFlag {
	switch tier {
	case script.Tier:
		return []uselessFlag{
			{"isolation", "the hermetic tier is an isolation of its own"},
			{"publish", "a script of the hermetic tier has no server to reach"},
			{"host-port", "a script of the hermetic tier has no network but what --allow lets curl fetch; --host gives a name an address"},
			{"nested", "the hermetic tier runs no programs, and so none that makes sandboxes"},
			{"overlay-to", "write --overlay; to keep the changes, run the script again without it"},
			{"on-replaced", "a script has the workspace alone, and no name in it is protected by a mount"},
			{"egressd", "the hermetic tier has no doors to hand over: it serves its one client itself"},
			{"write", noFileRules},
			{"read", noFileRules},
			{"hide", noFileRules},
			{"home", noFileRules},
		}
	case microvm.Tier:
		return []uselessFlag{
			{"isolation", "the microVM is an isolation of its own"},
			{"publish", "Vercel publishes a port to everybody or not at all: --port PORT does that, and launch sandbox port NAME PORT says where"},
			{"host-port", "the VM cannot reach this machine"},
			{"nested", "the VM is its own"},
			{"overlay", "the workspace is a copy there; what comes back is judged file by file"},
			{"overlay-to", "the workspace is a copy there; what comes back is judged file by file"},
			{"on-replaced", "the VM has no files of this machine"},
			{"egressd", "Vercel enforces the policy"},
			{"upstream-proxy", noUpstream},
			{"upstream-bypass", noUpstream},
			{"upstream-credentials", noUpstream},
			{"upstream-ca", noUpstream},
			{"upstream-resolve", noUpstream},
			{"limit", "the VM is the bound: --vcpus says how large it is"},
			{"user", "the VM has users of its own"},
			{"approve", "Vercel does not ask"},
			{"learn", "Vercel does not report what it denied"},
			{"home", "the VM has a home directory of its own; what of yours is sent, is the workspace"},
		}
	}
	return nil
}
