package policy

import "egressd/policy/internal/suffix"

// Warnings lists the allow rules that are wider than they look: those that
// cover a suffix below which strangers own names, such as *.github.io. Such a
// rule is valid; whoever wrote it should know. Rules of presets are not listed.
func (p *Policy) Warnings() []Problem {
	if p == nil {
		return nil
	}
	var out []Problem
	for _, r := range p.allowRules {
		if r.parsed == nil || r.ofPreset() {
			continue
		}
		name := r.parsed.name
		if (r.parsed.scope == scopeBelow || r.parsed.scope == scopeTree) && suffix.Shared(name) {
			out = append(out, Problem{
				Pos:  r.Pos,
				What: "rule " + r.Text + " covers everybody's names below " + name + ", not one owner's",
				Fix:  "name the hosts you mean, such as myname." + name,
			})
		}
	}
	return out
}
