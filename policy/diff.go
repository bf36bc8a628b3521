package policy

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
)

// Difference is what one policy has and another has not, as lines of policy
// text: "allow: api.example.com", "presets: npm", "limits.connections: 100".
type Difference struct {
	Added, Removed []string
}

// Diff reports what changes when p takes the place of old. Order, spelling and
// duplicates make no difference. Either may be nil, which has no lines. Of
// policies under a ceiling (see [Policy.Under]) only their own lines are
// compared.
func (p *Policy) Diff(old *Policy) Difference {
	return Difference{Added: p.beyond(old), Removed: old.beyond(p)}
}

// beyond lists the lines of p that other has not: rules in their order, then
// the rest.
func (p *Policy) beyond(other *Policy) []string {
	if p == nil || !p.loaded {
		return nil
	}
	if other == nil || !other.loaded {
		other = &Policy{allow: newIndex(0), deny: newIndex(0)}
	}
	var out []string
	for _, list := range []struct {
		word  string
		rules []*Rule
		in    *index
	}{{"allow: ", p.allowRules, other.allow}, {"deny: ", p.denyRules, other.deny}} {
		seen := make(map[string]bool)
		for _, r := range list.rules {
			if r.ofPreset() || seen[r.Text] || list.in.has(r) {
				continue
			}
			seen[r.Text] = true
			out = append(out, list.word+r.Text)
		}
	}
	theirs := make(map[string]bool)
	for _, line := range other.settingLines() {
		theirs[line] = true
	}
	for _, line := range p.settingLines() {
		if !theirs[line] {
			out = append(out, line)
		}
	}
	return out
}

// presetFile begins the Pos.File of rules that a preset brought.
const presetFile = "preset:"

// ofPreset reports whether a preset brought the rule.
func (r *Rule) ofPreset() bool { return strings.HasPrefix(r.Pos.File, presetFile) }

// has reports whether a document wrote a rule into ix that means what r means.
func (ix *index) has(r *Rule) bool {
	p := r.pattern()
	for i := ix.head(p); i >= 0; i = ix.rules[i].next {
		c := &ix.rules[i]
		if c.rule.ofPreset() || c.raw != p.raw || !slices.Equal(c.ports, p.ports) || !reflect.DeepEqual(c.path, p.path) {
			continue
		}
		// The rules of a tree (.name) stand under the keys of exact and
		// subdomain rules, too.
		if c.rule.pattern().scope == p.scope {
			return true
		}
	}
	return false
}

// head reports the first rule under the key of p, -1 without.
func (ix *index) head(p pattern) int32 {
	head, ok := int32(-1), false
	switch p.scope {
	case scopeExact, scopeTree:
		head, ok = ix.exact[p.name]
	case scopeBelow:
		head, ok = ix.below[p.name]
	case scopeAddr:
		head, ok = ix.addrs[p.prefix]
	}
	if !ok {
		return -1
	}
	return head
}

// settingLines spells everything but the rules, one line a fact, in one order.
func (p *Policy) settingLines() []string {
	var out []string
	for _, name := range slices.Sorted(slices.Values(p.presets)) {
		out = append(out, "presets: "+name)
	}
	out = append(out, p.hostLines()...)
	out = append(out, p.secretLines()...)
	for _, line := range p.limits.lines() {
		out = append(out, "limits."+line)
	}
	out = append(out, p.fileLines()...)
	if p.dns.Mode == DNSForward {
		out = append(out, "dns.mode: forward")
	}
	if len(p.dns.Upstreams) > 0 {
		servers := make([]string, 0, len(p.dns.Upstreams))
		for _, u := range p.dns.Upstreams {
			servers = append(servers, u.Text)
		}
		out = append(out, "dns.upstreams: "+strings.Join(servers, ", "))
	}
	if p.audit {
		out = append(out, "audit: true")
	}
	return out
}

func (p *Policy) hostLines() []string {
	var out []string
	for h, addrs := range p.static {
		line := "hosts: " + h.String() + "="
		for i, a := range slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare) {
			if i > 0 {
				line += ","
			}
			line += a.String()
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// secretLines names the variables and where they go; values are not in a policy.
func (p *Policy) secretLines() []string {
	var out []string
	for _, s := range p.secrets {
		for to := range s.targets {
			out = append(out, fmt.Sprintf("secrets: %s in %s towards %s", s.Env, s.Header, to))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
