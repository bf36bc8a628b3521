package policy

import (
	"egressd/policy/internal/grammar"
	"egressd/policy/internal/lists"
	"egressd/policy/internal/suffix"
)

// Warnings lists the allow rules that are wider than they look: those that
// cover a suffix below which strangers own names, such as *.github.io. Such a
// rule is valid; whoever wrote it should know. Rules of presets are not listed.
func (p *Policy) Warnings() []Problem {
	if p == nil || !p.loaded {
		return nil
	}
	var out []Problem
	for _, r := range p.allowRules {
		if r.parsed == nil || r.ofPreset() {
			continue
		}
		name := r.parsed.Name
		if (r.parsed.Scope == grammar.Below || r.parsed.Scope == grammar.Tree) && suffix.Shared(name) {
			out = append(out, r.wide(name))
		}
	}
	for _, l := range p.allow.lists {
		for _, name := range l.table.wide {
			for f := l.table.Find(name, lists.Below); ; {
				at, ok := f.Next()
				if !ok {
					break
				}
				out = append(out, l.rule(at).rule.wide(name))
			}
		}
	}
	return out
}

// wide is the warning about an allow rule that covers everybody's names below name.
func (r *Rule) wide(name string) Problem {
	return Problem{
		Pos:  r.Pos,
		What: "rule " + r.Text + " covers everybody's names below " + name + ", not one owner's",
		Fix:  "name the hosts you mean, such as myname." + name,
	}
}
