package policy

import "slices"

// Intercepted lists, in order, the hosts whose TLS p wants opened: those of
// rules with a path (names, "*.example.com", ".example.com", addresses), and
// those that a secret goes to. Of a ceiling's hosts those are left out that no
// rule of p names.
func (p *Policy) Intercepted() []string {
	if p == nil || !p.loaded {
		return nil
	}
	var hosts []string
	for _, list := range [][]*Rule{p.allowRules, p.denyRules} {
		for _, r := range list {
			if r.parsed != nil && r.parsed.Path != nil {
				hosts = append(hosts, r.parsed.Hosts())
			}
		}
	}
	for to := range p.secretHosts {
		hosts = append(hosts, to.Host.String())
	}
	for _, text := range p.ceiling.Intercepted() {
		h, err := ParseHost(text)
		if c := p.allow.find(h); p.audit || err != nil || c.next() {
			hosts = append(hosts, text)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
