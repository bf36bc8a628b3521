package explain

import (
	"net/netip"
	"slices"
	"strings"

	"egressd/internal/cli/policyflags"
	"egressd/policy"
	"egressd/policy/files"
)

// Answer is the decision about one target, for programs.
type Answer struct {
	Target  string `json:"target"` // as it was asked
	Allowed bool   `json:"allowed"`
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Method  string `json:"method,omitempty"`
	Path    string `json:"path,omitempty"`
	Audit   bool   `json:"audit,omitempty"` // allowed by audit mode only
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	Rule    *Rule  `json:"rule,omitempty"`    // that decided
	Address string `json:"address,omitempty"` // that was refused
	Suggest string `json:"suggest,omitempty"` // flags that would allow it
	Note    string `json:"note,omitempty"`    // a rule that people expect to cover it
}

// Rule is a rule and its place.
type Rule struct {
	Text  string `json:"text"`
	Place string `json:"place"`
	Deny  bool   `json:"deny"`
}

func ruleOf(r *policy.Rule) Rule { return Rule{Text: r.Text, Place: r.Pos.String(), Deny: r.Deny} }

// AnswerTo is [Text] for programs. lookup is as in [Answers].
func AnswerTo(p *policy.Policy, target, method string, lookup func(policy.Host) ([]netip.Addr, error)) (Answer, error) {
	t, err := Parse(target, method)
	if err != nil {
		return Answer{}, err
	}
	if lookup != nil && t.Host.Name() != "" && len(p.Static(t.Host)) == 0 {
		t.Addrs, _ = lookup(t.Host) // without addresses, none are judged
	}
	r, d := Judge(p, t)
	a := Answer{
		Target: target, Allowed: d.Allowed(), Host: t.Host.String(), Port: t.Port, Method: t.Method, Path: t.Path,
		Audit: d.Audit, Reason: d.Reason.String(), Meaning: Meaning(d.Reason),
	}
	if d.Rule != nil {
		rule := ruleOf(d.Rule)
		a.Rule = &rule
	}
	if a.Allowed {
		return a, nil
	}
	a.Note = nearMiss(p, t.Host)
	if r.Addr.IsValid() {
		a.Address = r.Addr.String()
	}
	if d.Reason == policy.ReasonIPProhibited && t.Host.Name() != "" && r.Addr.IsValid() {
		a.Suggest = "--host " + t.Host.String() + "=" + a.Address
	} else if rule := d.Suggest(r); rule != "" {
		a.Suggest = policyflags.Spell([]string{rule})
	}
	return a, nil
}

// FileAnswer is the decision about one file, for programs.
type FileAnswer struct {
	File    string `json:"file"` // as it was asked
	Path    string `json:"path"` // absolute, without links
	Wanted  string `json:"wanted"`
	Allowed bool   `json:"allowed"`
	Access  string `json:"access"`
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	Rule    *Rule  `json:"rule,omitempty"`
}

// FileAnswers is [Files] for programs.
func FileAnswers(g *files.Gate, questions []FileQuestion) []FileAnswer {
	all := make([]FileAnswer, 0, len(questions))
	for _, q := range questions {
		d := g.Decide(q.Path)
		a := FileAnswer{
			File: q.Asked, Path: q.Path, Wanted: q.Wanted.Key(), Allowed: d.Access >= q.Wanted,
			Access: d.Access.String(), Reason: d.Reason.String(), Meaning: FileMeaning(d.Reason),
		}
		if d.Rule != (files.Rule{}) {
			a.Rule = &Rule{Text: d.Rule.Path, Place: d.Rule.At, Deny: d.Access < q.Wanted}
		}
		all = append(all, a)
	}
	return all
}

// Account is what a policy allows, for programs.
type Account struct {
	Name     string   `json:"name"`
	Digest   string   `json:"digest"`
	Audit    bool     `json:"audit"`
	Allow    int      `json:"allow"` // rules, those of presets and lists included
	Deny     int      `json:"deny"`
	Rules    []Rule   `json:"rules"` // but those of lists
	Intranet []string `json:"intranet"`
	Warnings []string `json:"warnings"`
}

// AccountOf is [Policy] for programs.
func AccountOf(name string, p *policy.Policy) Account {
	a := Account{Name: name, Digest: p.Digest(), Audit: p.Audit(), Rules: []Rule{}, Intranet: []string{}, Warnings: []string{}}
	a.Allow, a.Deny = p.Count()
	for _, r := range slices.Concat(p.Own(false), p.Own(true)) {
		a.Rules = append(a.Rules, ruleOf(r))
	}
	a.Intranet = append(a.Intranet, p.Intranet()...)
	for _, w := range p.Warnings() {
		a.Warnings = append(a.Warnings, w.Error())
	}
	return a
}

// PresetRules is a preset, for programs.
type PresetRules struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"`
}

// PresetList reports the presets of these names; none: all presets. ok is false if
// there is one that is none.
func PresetList(names []string) (list []PresetRules, ok bool) {
	if len(names) == 0 {
		names = policy.PresetNames()
	}
	for _, name := range names {
		text, ok := policy.PresetText(name)
		if !ok {
			return nil, false
		}
		list = append(list, PresetRules{Name: name, Rules: rulesIn(text)})
	}
	return list, true
}

// rulesIn lists the rules in the text of a preset.
func rulesIn(text string) (rules []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			rules = append(rules, line)
		}
	}
	return rules
}
