package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"egressd/dnsfilter"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/summary"
	"egressd/policy"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/network"
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
	fs.StringVar(&o.tier, "tier", tierProcess, "answer for this `TIER`: process, hermetic or vercel")
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
	if o.tier != tierProcess && o.tier != tierHermetic && o.tier != tierVercel {
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
		if o.tier == tierHermetic && !fetchable(target) {
			allowed = false
			text += "not in the hermetic tier: " + summary.Safe(target) + ": curl and wget are its only clients, and speak HTTP and HTTPS\n"
		}
	}
	if o.tier == tierVercel {
		more, same, err := explainVercel(p, fs.Args())
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

// fetchable reports whether a script of the hermetic tier has a client for
// target. Of HOST:PORT nobody knows what is spoken there.
func fetchable(target string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(target), "://")
	return !ok || scheme == "http" || scheme == "https"
}

// explainVercel says what a policy becomes at Vercel, and which of the targets
// it does not let out although the policy allows them.
func explainVercel(p *policy.Policy, targets []string) (text string, same bool, err error) {
	n, err := network.Translate(p, func(string) (string, bool) { return "...", true })
	if err != nil {
		return "", false, err
	}
	words, err := json.Marshal((&vercel.Backend{Network: n}).Policy())
	if err != nil {
		return "", false, err
	}
	text, same = "in the vercel tier the policy is: "+string(words)+"\n", true
	for _, note := range n.Notes {
		text += "  " + note + "\n"
	}
	for _, target := range targets {
		t, err := explain.Parse(target, "")
		if err == nil && !n.All && t.Host.Name() != "" && t.Port != 443 {
			text += "not in the vercel tier: " + summary.Safe(target) + ": to a name only TLS gets out, judged by the name in its hello\n"
			same = false
		}
	}
	return text, same, nil
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
