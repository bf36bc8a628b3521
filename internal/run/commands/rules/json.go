package rules

import (
	"errors"
	"flag"
	"net/netip"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/run"
	"egressd/policy"
)

// answerOptions are those of a command that has an answer and nothing else.
type answerOptions struct{ json bool }

func (o *answerOptions) flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.BoolVar(&o.json, "json", false, "answer in JSON")
	return fs
}

// presetsOptions are those of launch presets.
type presetsOptions struct {
	answerOptions
	names bool
}

func (o *presetsOptions) flags() *flag.FlagSet {
	fs := o.answerOptions.flags("presets")
	fs.BoolVar(&o.names, "names", false, "names only")
	return fs
}

// checked is the answer of launch check in JSON.
type checked struct {
	Version int         `json:"version"` // 1
	Found   []foundFile `json:"found"`   // without being named
	explain.Account
}

// foundFile is a policy file that nobody named.
type foundFile struct {
	Path   string `json:"path"`
	State  string `json:"state"` // trusted, changed or untrusted: of the last two only what tightens counts
	Digest string `json:"digest"`
}

// explained is the answer of launch explain in JSON.
type explained struct {
	Version int                  `json:"version"` // 1
	Allowed bool                 `json:"allowed"` // all of it is
	Targets []explain.Answer     `json:"targets"`
	Files   []explain.FileAnswer `json:"files"`
}

// explainJSON is explain for programs.
func (l launcher) explainJSON(o *explainOptions, p *policy.Policy, targets []string, lookup func(policy.Host) ([]netip.Addr, error)) int {
	if o.tier != run.TierProcess {
		return l.Usage(errors.New("--json answers for --tier process: leave out one of the two"))
	}
	all := explained{Version: 1, Allowed: true, Targets: []explain.Answer{}, Files: []explain.FileAnswer{}}
	for _, target := range targets {
		a, err := explain.AnswerTo(p, target, strings.ToUpper(o.method), lookup)
		if err != nil {
			return l.Usage(err)
		}
		all.Targets, all.Allowed = append(all.Targets, a), all.Allowed && a.Allowed
	}
	if len(o.write)+len(o.read) > 0 {
		g, questions, err := l.fileQuestions(o, p)
		if err != nil {
			return l.Fail(cli.ExitUsage, err)
		}
		all.Files = explain.FileAnswers(g, questions)
		for _, a := range all.Files {
			all.Allowed = all.Allowed && a.Allowed
		}
	}
	if code := l.PrintJSON(all); code != cli.ExitOK || all.Allowed {
		return code
	}
	return cli.ExitNo
}
