package firewall

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// State is a network policy as the service reports it: its older form,
// which holds no values of headers.
type State struct {
	Mode           string          `json:"mode"` // allow-all, deny-all, custom, or of old default-allow, default-deny
	AllowedDomains []string        `json:"allowedDomains"`
	AllowedCIDRs   []string        `json:"allowedCIDRs"`
	DeniedCIDRs    []string        `json:"deniedCIDRs"`
	InjectionRules []InjectionRule `json:"injectionRules"`
	ForwardRules   []ForwardRule   `json:"forwardRules"`
}

// InjectionRule is a Rule with headers, without their values.
type InjectionRule struct {
	Domain      string   `json:"domain"`
	HeaderNames []string `json:"headerNames"`
	Match       *Match   `json:"match"`
}

// ForwardRule is a Rule that forwards.
type ForwardRule struct {
	Domain     string `json:"domain"`
	ForwardURL string `json:"forwardURL"`
	Match      *Match `json:"match"`
}

// Difference says where a policy in force is not the one that was asked
// for. Wider is what may be reached beyond it.
type Difference struct {
	Wider, Narrower []string
}

// Error implements error.
func (d *Difference) Error() string {
	var parts []string
	if len(d.Wider) > 0 {
		parts = append(parts, "allows beyond what was asked: "+strings.Join(d.Wider, ", "))
	}
	if len(d.Narrower) > 0 {
		parts = append(parts, "lacks: "+strings.Join(d.Narrower, ", "))
	}
	return "the network policy in force " + strings.Join(parts, "; ")
}

// Compare reports whether got means what p asked for: the same domains, subnets
// and rules, in any order and spelling. The error is a *Difference. No answer, a
// nil got, is a difference: it is then unknown what is in force.
func (p *Policy) Compare(got *State) error {
	if got == nil {
		return &Difference{Wider: []string{"nothing was reported"}}
	}
	want, have := p.facts(), got.facts()
	d := &Difference{}
	for f := range have {
		if !want[f] {
			d.add(f, true)
		}
	}
	for f := range want {
		if !have[f] {
			d.add(f, false)
		}
	}
	if len(d.Wider)+len(d.Narrower) == 0 {
		return nil
	}
	slices.Sort(d.Wider)
	slices.Sort(d.Narrower)
	return d
}

// fact is one thing that a policy says.
type fact struct{ kind, text string }

// add files f, which one side alone has. Subnets that are denied are the other
// way round: without one, more is reached.
func (d *Difference) add(f fact, there bool) {
	if text := f.kind + " " + f.text; there != (f.kind == "deny") {
		d.Wider = append(d.Wider, text)
	} else {
		d.Narrower = append(d.Narrower, text)
	}
}

type facts map[fact]bool

func (fs facts) add(kind, format string, args ...any) {
	fs[fact{kind, fmt.Sprintf(format, args...)}] = true
}

func (p *Policy) facts() facts {
	fs := facts{}
	switch {
	case p == nil || !p.AllowAll && len(p.Domains)+len(p.AllowSubnets) == 0:
		return fs
	case p.AllowAll:
		fs.add("everything", "")
		return fs
	}
	for _, d := range p.Domains {
		fs.add("domain", "%s", strings.ToLower(d.Name))
		for _, r := range d.Rules {
			switch {
			case r.Headers != nil:
				var names []string
				for n := range r.Headers {
					names = append(names, n)
				}
				fs.injection(d.Name, names, r.Match)
			case r.ForwardURL != "":
				fs.add("forward", "%s to %s%s", strings.ToLower(d.Name), r.ForwardURL, matchText(r.Match))
			}
		}
	}
	fs.subnets("subnet", p.AllowSubnets)
	fs.subnets("deny", p.DenySubnets)
	return fs
}

func (fs facts) injection(domain string, names []string, m *Match) {
	lower := make([]string, len(names))
	for i, n := range names {
		lower[i] = strings.ToLower(n)
	}
	slices.Sort(lower)
	fs.add("headers", "%s of %s%s", strings.Join(lower, "+"), strings.ToLower(domain), matchText(m))
}

func (fs facts) subnets(kind string, all []string) {
	for _, s := range all {
		if p, err := netip.ParsePrefix(s); err == nil {
			s = p.Masked().String()
		}
		fs.add(kind, "%s", s)
	}
}

func (s *State) facts() facts {
	fs := facts{}
	switch s.Mode {
	case "deny-all", "default-deny":
		if len(s.AllowedDomains)+len(s.AllowedCIDRs)+len(s.InjectionRules)+len(s.ForwardRules) == 0 {
			return fs
		}
	case "allow-all", "default-allow":
		fs.add("everything", "")
		return fs
	case "custom":
	default:
		fs.add("unknown mode", "%.40q", s.Mode)
	}
	for _, d := range s.AllowedDomains {
		fs.add("domain", "%s", strings.ToLower(d))
	}
	for _, r := range s.InjectionRules {
		fs.add("domain", "%s", strings.ToLower(r.Domain))
		fs.injection(r.Domain, r.HeaderNames, r.Match)
	}
	for _, r := range s.ForwardRules {
		fs.add("domain", "%s", strings.ToLower(r.Domain))
		fs.add("forward", "%s to %s%s", strings.ToLower(r.Domain), r.ForwardURL, matchText(r.Match))
	}
	fs.subnets("subnet", s.AllowedCIDRs)
	if len(fs) > 0 { // where nothing is allowed there is nothing to deny
		fs.subnets("deny", s.DeniedCIDRs)
	}
	return fs
}

func matchText(m *Match) string {
	if m == nil || m.Path == nil && len(m.Method)+len(m.QueryString)+len(m.Headers) == 0 {
		return ""
	}
	sorted := *m
	sorted.Method = slices.Sorted(slices.Values(m.Method))
	text, err := json.Marshal(&sorted)
	if err != nil {
		return " where it cannot be told"
	}
	return " where " + string(text)
}
