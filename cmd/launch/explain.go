package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"egressd/dnsfilter"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/microvm"
	"egressd/internal/run/script"
)

type explainOptions struct {
	gate   policyflags.Flags
	method string
	tier   string
}

func (o *explainOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("explain", flag.ContinueOnError)
	o.gate.Register(fs)
	fs.StringVar(&o.method, "method", "", "judge a request with this HTTP `METHOD` (GET)")
	fs.StringVar(&o.tier, "tier", run.TierProcess, "answer for this `TIER`: process, hermetic or vercel")
	return fs
}

// explain says how the policy judges each target: 0 all allowed, 1 one denied,
// 2 a question that cannot be asked.
func (l *launcher) explain(args []string) int {
	var o explainOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() == 0 {
		return l.Usage(errors.New("explain needs a URL or HOST:PORT"))
	}
	if o.tier != run.TierProcess && o.tier != script.Tier && o.tier != microvm.Tier {
		return l.Usage(fmt.Errorf("--tier %q: process, hermetic or vercel", o.tier))
	}
	p, err := o.gate.Load(os.ReadFile)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	text, allowed, err := explain.Answers(p, fs.Args(), strings.ToUpper(o.method))
	if err != nil {
		return l.Usage(err)
	}
	for _, target := range fs.Args() {
		if o.tier == script.Tier && !script.Fetchable(target) {
			allowed = false
			text += "not in the hermetic tier: " + cli.Safe(target) + ": curl and wget are its only clients, and speak HTTP and HTTPS\n"
		}
	}
	if o.tier == microvm.Tier {
		more, same, err := microvm.Explain(p, fs.Args())
		if err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		text, allowed = text+more, allowed && same
	}
	if code := l.Print(text); code != cli.ExitOK || allowed {
		return code
	}
	return cli.ExitNo
}

// check validates a policy file and says what it allows.
func (l *launcher) check(args []string) int {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("check needs one policy file"))
	}
	gate := policyflags.Flags{Files: fs.Args()}
	p, err := gate.Load(os.ReadFile)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if _, err := dnsfilter.PolicyUpstreams(p); err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	return l.Print(explain.Policy(fs.Arg(0), p))
}

// presets lists the built-in presets, or shows the rules of those named.
func (l *launcher) presets(args []string) int {
	fs := flag.NewFlagSet("presets", flag.ContinueOnError)
	names := fs.Bool("names", false, "names only")
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() == 0 {
		return l.Print(explain.Presets(*names))
	}
	text, err := explain.Preset("launch", fs.Args())
	if err != nil {
		return l.Usage(err)
	}
	return l.Print(text)
}
