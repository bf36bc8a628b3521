// Package rules is the commands about rules, without a run: explain, check, trust and presets.
//
//	commands = append(commands, rules.Commands(l)...)
package rules

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"egressd/dnsfilter"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/microvm"
	"egressd/internal/run/place"
	"egressd/internal/run/project"
	"egressd/internal/run/script"
	"egressd/policy"
	"egressd/policy/files"
)

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands lists the commands.
func Commands(l *run.Launcher) []cli.Command {
	c := launcher{l}
	return []cli.Command{
		{Name: "explain", Run: c.explain, Flags: func() *flag.FlagSet { return new(explainOptions).flags() }},
		{Name: "check", Run: c.check, Flags: func() *flag.FlagSet { return new(answerOptions).flags("check") }},
		{Name: "trust", Run: c.trust, Flags: func() *flag.FlagSet { return new(trustOptions).flags() }},
		{Name: "presets", Run: c.presets, Flags: func() *flag.FlagSet { return new(presetsOptions).flags() }, Words: policy.PresetNames},
	}
}

type explainOptions struct {
	gate   policyflags.Flags
	method string
	tier   string
	write  policyflags.List
	read   policyflags.List
	agent  string
	lookup bool // --resolve
	alone  bool // --no-project
	json   bool
}

func (o *explainOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("explain", flag.ContinueOnError)
	o.gate.Register(fs)
	run.RegisterNoProject(fs, &o.alone)
	fs.BoolVar(&o.json, "json", false, "answer in JSON")
	fs.StringVar(&o.method, "method", "", "judge a request with this HTTP `METHOD` (GET)")
	fs.BoolVar(&o.lookup, "resolve", false, "look names up, and judge their addresses as well")
	fs.StringVar(&o.tier, "tier", run.TierProcess, "answer for this `TIER`: process, hermetic or vercel")
	fs.Var(&o.write, "write", "may the program write this `FILE`?")
	fs.Var(&o.read, "read", "may the program read this `FILE`?")
	fs.StringVar(&o.agent, "agent", "", "answer --write and --read for a run of this `PROGRAM`: claude, codex, ...")
	return fs
}

// explain says how the policy judges each target: 0 all allowed, 1 one denied,
// 2 a question that cannot be asked.
func (l launcher) explain(args []string) int {
	var o explainOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	aboutFiles := len(o.write)+len(o.read) > 0
	switch {
	case fs.NArg() == 0 && !aboutFiles:
		return l.Usage(errors.New("explain needs a URL or HOST:PORT, --write FILE or --read FILE"))
	case aboutFiles && o.tier == script.Tier:
		return l.Usage(fmt.Errorf("--write and --read ask about the process and Vercel tiers: a script sees the directory that it was started in and nothing else"))
	}
	if o.tier != run.TierProcess && o.tier != script.Tier && o.tier != microvm.Tier {
		return l.Usage(fmt.Errorf("--tier %q: process, hermetic or vercel", o.tier))
	}
	if !o.alone {
		var err error
		if _, o.gate.Found, err = l.FindProject(""); err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
	}
	p, err := o.gate.Load(os.ReadFile)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	lookup, err := o.resolver(p)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if o.json {
		return l.explainJSON(&o, p, fs.Args(), lookup)
	}
	text, allowed, err := explain.Answers(p, fs.Args(), strings.ToUpper(o.method), lookup)
	if err != nil {
		return l.Usage(err)
	}
	if aboutFiles {
		more, yes, err := l.explainFiles(&o, p)
		if err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		text, allowed = text+more, allowed && yes
	}
	for _, target := range fs.Args() {
		if o.tier == script.Tier && !script.Fetchable(target) {
			allowed = false
			text += "not in the hermetic tier: " + cli.Safe(target) + ": curl and wget are its only clients, and speak HTTP and HTTPS\n"
		}
	}
	if o.tier == microvm.Tier && fs.NArg() > 0 {
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

// resolver looks names up as a run with this policy does; nil without --resolve.
func (o *explainOptions) resolver(p *policy.Policy) (func(policy.Host) ([]netip.Addr, error), error) {
	if !o.lookup {
		return nil, nil
	}
	servers, err := dnsfilter.PolicyUpstreams(p)
	if err == nil && len(servers) == 0 {
		servers, err = run.HostUpstreams()
	}
	r := &dnsfilter.Resolver{Upstreams: servers}
	return func(name policy.Host) ([]netip.Addr, error) {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		return r.Lookup(ctx, name)
	}, err
}

// lookupTimeout is how long a name may take with --resolve.
const lookupTimeout = 10 * time.Second

// explainFiles answers --write and --read.
func (l launcher) explainFiles(o *explainOptions, p *policy.Policy) (text string, allowed bool, err error) {
	g, questions, err := l.fileQuestions(o, p)
	if err != nil {
		return "", false, err
	}
	text, allowed = explain.Files(g, questions)
	return text, allowed, nil
}

// fileQuestions reads --write and --read, and reports who answers.
func (l launcher) fileQuestions(o *explainOptions, p *policy.Policy) (g *files.Gate, questions []explain.FileQuestion, err error) {
	g, at, err := l.filesHere(p, o.agent, o.tier)
	if err != nil {
		return nil, nil, err
	}
	for _, list := range []struct {
		paths  policyflags.List
		wanted files.Access
	}{{o.write, files.ReadWrite}, {o.read, files.ReadOnly}} {
		for _, asked := range list.paths {
			name := asked
			if rest, below := strings.CutPrefix(asked, "~/"); (below || asked == "~") && at.Home != "" {
				name = filepath.Join(at.Home, rest) // quoted, or in a file: no shell has read it
				if asked == "~" {
					name = at.Home
				}
			}
			questions = append(questions, explain.FileQuestion{Asked: asked, Path: place.Resolve(name), Wanted: list.wanted})
		}
	}
	return g, questions, nil
}

// filesHere applies the files section of p to the current directory, for a run of
// agent ("": none) in tier.
func (l launcher) filesHere(p *policy.Policy, agent, tier string) (*files.Gate, files.Place, error) {
	find := place.Find
	if tier == microvm.Tier {
		find = place.Elsewhere
	}
	at, err := find(place.Run{Env: l.Environ, Argv: []string{agent}, StateHome: l.Getenv("XDG_STATE_HOME")})
	if err != nil {
		return nil, at, err
	}
	g, err := p.Files(at)
	return g, at, err
}

// check validates a policy file and says what it allows.
func (l launcher) check(args []string) int {
	var o answerOptions
	fs := o.flags("check")
	if code, done := l.Parse(fs, args); done {
		return code
	}
	gate := policyflags.Flags{Files: fs.Args()}
	name, notes, from := fs.Arg(0), "", []foundFile{}
	if fs.NArg() == 0 {
		found, docs, err := l.FindProject("")
		if err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		name, gate.Found = "what was found from here", docs
		for _, f := range found {
			from = append(from, foundFile{Path: f.Path, State: string(f.State), Digest: f.Digest})
			notes += "found   " + run.FoundText(f) + "\n"
		}
	}
	if fs.NArg() > 1 || fs.NArg() == 0 && notes == "" {
		return l.Usage(fmt.Errorf("check needs one policy file, or a %s in this directory or above it", project.Name))
	}
	p, err := gate.Load(os.ReadFile)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if _, err := dnsfilter.PolicyUpstreams(p); err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	if o.json {
		return l.PrintJSON(checked{Version: 1, Found: from, Account: explain.AccountOf(name, p)})
	}
	g, at, err := l.filesHere(p, "", run.TierProcess)
	if err != nil {
		return l.Fail(cli.ExitUsage, err)
	}
	return l.Print(notes + explain.Policy(name, p) + explain.FilesHere(g, at))
}

// presets lists the built-in presets, or shows the rules of those named.
func (l launcher) presets(args []string) int {
	var o presetsOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if list, ok := explain.PresetList(fs.Args()); ok && o.json {
		return l.PrintJSON(list)
	}
	if fs.NArg() == 0 {
		return l.Print(explain.Presets(o.names))
	}
	text, err := explain.Preset("launch", fs.Args())
	if err != nil {
		return l.Usage(err)
	}
	return l.Print(text)
}
