package policy

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/lists"
)

// Difference is what one policy has and another has not, as lines of policy
// text: "allow: api.example.com", "presets: npm", "limits.connections: 100".
type Difference struct {
	Added, Removed         []string
	MoreAdded, MoreRemoved int // rules that are not among the lines
}

// Implementation constants: how many rules are lines of a Difference, of allow and
// of deny each, and of each list file.
const (
	maxRuleLines = 1000
	maxListLines = 50
)

// Diff reports what changes when p takes the place of old. Order, spelling and
// duplicates make no difference. Either may be nil, which has no lines. Of
// policies under a ceiling (see [Policy.Under]) only their own lines are
// compared.
func (p *Policy) Diff(old *Policy) Difference {
	var d Difference
	d.Added, d.MoreAdded = p.beyond(old)
	d.Removed, d.MoreRemoved = old.beyond(p)
	return d
}

// beyond lists the lines of p that other has not: rules in their order, then
// the rest. more counts the rules that are not listed.
func (p *Policy) beyond(other *Policy) (out []string, more int) {
	if p == nil || !p.loaded {
		return nil, 0
	}
	if other == nil || !other.loaded {
		other = &Policy{allow: newIndex(0), deny: newIndex(0)}
	}
	for _, list := range []struct {
		word  string
		rules []*Rule
		of    *index
		in    *index
	}{{"allow: ", p.allowRules, p.allow, other.allow}, {"deny: ", p.denyRules, p.deny, other.deny}} {
		seen, lines := make(map[string]bool), 0
		for _, r := range list.rules {
			if r.ofPreset() || list.in.count > 0 && list.in.has(r) {
				continue
			}
			if !list.of.alone(r) {
				if seen[r.Text] {
					continue
				}
				seen[r.Text] = true
			}
			if lines++; lines > maxRuleLines {
				more++
				continue
			}
			out = append(out, list.word+r.Text)
		}
		for _, l := range list.of.lists {
			lines, n := l.beyond(list.in)
			for _, line := range lines {
				out = append(out, list.word+line)
			}
			more += n
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
	return out, more
}

// beyond lists rules in the table of l that ix has not, and counts the rest.
func (l *listed) beyond(ix *index) (lines []string, more int) {
	var others []*lists.List
	for _, other := range ix.lists {
		if other.table == l.table {
			return nil, 0
		}
		others = append(others, other.table.List)
	}
	l.table.Beyond(others, func(item lists.Item) bool {
		switch {
		case ix.count == 0 && len(lines) == maxListLines: // all the others are more
			more = l.table.Names() - maxListLines
			return false
		case ix.hasPattern(l.pattern(item)):
		case len(lines) < maxListLines:
			lines = append(lines, item.Text)
		default:
			more++
		}
		return true
	})
	return lines, more
}

// presetFile begins the Pos.File of rules that a preset brought.
const presetFile = "preset:"

// ofPreset reports whether a preset brought the rule.
func (r *Rule) ofPreset() bool { return strings.HasPrefix(r.Pos.File, presetFile) }

// has reports whether a document wrote a rule into ix that means what r means.
func (ix *index) has(r *Rule) bool { return ix.hasPattern(r.pattern()) }

func (ix *index) hasPattern(p grammar.Pattern) bool {
	for i := ix.head(p); i >= 0; i = ix.rules[i].next {
		c := &ix.rules[i]
		if c.rule.ofPreset() || c.raw != p.Raw || !slices.Equal(c.ports, p.Ports) || !reflect.DeepEqual(c.path, p.Path) {
			continue
		}
		// The rules of a tree (.name) stand under the keys of exact and
		// subdomain rules, too.
		if c.rule.pattern().Scope == p.Scope {
			return true
		}
	}
	for _, l := range ix.lists {
		if l.has(p) {
			return true
		}
	}
	return false
}

// has reports whether the table of l holds a rule that means p.
func (l *listed) has(p grammar.Pattern) bool {
	if p.Name == "" || p.Raw || p.Path != nil {
		return false
	}
	scope := inList(p.Scope)
	for f := l.table.Find(p.Name, scope); ; {
		at, ok := f.Next()
		if !ok {
			return false
		}
		if f.Scope == scope && slices.Equal(l.ports(at), p.Ports) {
			return true
		}
	}
}

// alone reports whether no other rule is filed where r is, so that none repeats it.
func (ix *index) alone(r *Rule) bool {
	i := ix.head(r.pattern())
	return i >= 0 && ix.rules[i].next < 0
}

// head reports the first rule under the key of p, -1 without.
func (ix *index) head(p grammar.Pattern) int32 {
	head, ok := int32(-1), false
	switch p.Scope {
	case grammar.Exact, grammar.Tree:
		head, ok = ix.exact[p.Name]
	case grammar.Below:
		head, ok = ix.below[p.Name]
	case grammar.Addr:
		head, ok = ix.addrs[p.Prefix]
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
	for _, name := range slices.Sorted(slices.Values(p.Intranet())) {
		out = append(out, "intranet: "+name)
	}
	out = append(out, p.secretLines()...)
	for _, line := range p.limits.lines() {
		out = append(out, "limits."+line)
	}
	out = append(out, p.fileLines()...)
	out = append(out, p.upstream.Lines()...)
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
