package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/intranet"
	"egressd/policy/internal/names"
)

// Compile joins documents into one policy, loading the presets they name. All
// rules, secrets and paths count, whatever document they come from; where documents
// differ in a hosts entry or a single setting (dns mode, upstreams, a limit, what
// becomes of the home directory, the upstream proxy), the earlier document wins (flags come before files); audit is on when any
// document turns it on. No documents, or empty ones, make a policy that denies
// everything. Errors list every problem.
func Compile(docs ...*Document) (*Policy, error) {
	c := &compiler{p: &Policy{loaded: true, localNames: localNames{static: make(map[Host][]netip.Addr)}, secretHosts: make(map[target]bool)}}
	allows, denies := 0, 0
	for _, d := range docs {
		if d != nil {
			allows, denies = allows+len(d.Allow), denies+len(d.Deny)
		}
	}
	c.p.allow, c.p.deny = newIndex(allows), newIndex(denies)
	c.p.allow.allows = true
	c.p.allowRules, c.p.denyRules = make([]*Rule, 0, allows), make([]*Rule, 0, denies)
	for _, d := range docs {
		if d != nil {
			c.document(d)
		}
	}
	for _, d := range docs {
		if d != nil && d.Stricter {
			c.p.limits = c.p.limits.stricter(d.Limits)
		}
	}
	c.checkSecrets()
	c.checkUpstream()
	if err := c.errs.err(); err != nil {
		return nil, err
	}
	c.p.digest = lazyDigest(c.p.canonicalDigest)
	return c.p, nil
}

// Only reports the policy that p would be if e were its one allow rule: deny
// rules, hosts entries, secrets and settings stay. It is how a person's "yes,
// this once" is judged like any rule, without weakening what p forbids. A nil
// or zero p stays one that denies everything.
func (p *Policy) Only(e Entry) (*Policy, error) {
	if p == nil || !p.loaded {
		return p, nil
	}
	only := *p
	only.allow, only.allowRules = newIndex(1), nil
	only.allow.allows = true
	c := &compiler{p: &only}
	c.rule(e, false)
	if err := c.errs.err(); err != nil {
		return nil, err
	}
	only.digest = lazyDigest(only.canonicalDigest)
	return &only, nil
}

type compiler struct {
	p       *Policy
	errs    problems
	presets map[string]bool
	spare   []Rule // room for rules, allocated by the thousand
}

func (c *compiler) document(d *Document) {
	firstDeny := len(c.p.deny.rules)
	for _, e := range d.Deny {
		c.rule(e, true)
	}
	for _, e := range d.Allow {
		if r, p, ok := c.rule(e, false); ok {
			c.checkReachable(r, p, firstDeny)
		}
	}
	c.lists(d.DenyFiles, true)
	c.lists(d.AllowFiles, false)
	for _, e := range d.Presets {
		c.preset(e)
	}
	c.hosts(d.Hosts)
	c.files(d.Files)
	c.upstream(d.Upstream)
	c.settings(d)
}

// rule compiles one entry into its list, behind those that are there.
func (c *compiler) rule(e Entry, deny bool) (*Rule, grammar.Pattern, bool) {
	ix := c.p.allow
	if deny {
		ix = c.p.deny
	}
	r, p, ok := c.ruleAt(e, deny, ix.count)
	if ok {
		ix.count++
	}
	return r, p, ok
}

// ruleAt compiles one entry as the rule of this Index.
func (c *compiler) ruleAt(e Entry, deny bool, index int) (*Rule, grammar.Pattern, bool) {
	p, err := grammar.Parse(e.Text, deny)
	if err != nil {
		c.errs.addError(e.Pos, err)
		return nil, grammar.Pattern{}, false
	}
	ix, list := c.p.allow, &c.p.allowRules
	if deny {
		ix, list = c.p.deny, &c.p.denyRules
	}
	if len(c.spare) == 0 {
		c.spare = make([]Rule, 1024)
	}
	r := &c.spare[0]
	c.spare = c.spare[1:]
	*r = Rule{Text: e.Text, Pos: e.Pos, Index: index, Deny: deny}
	if !names.Plain(e.Text) {
		r.parsed = &p
	}
	*list = append(*list, r)
	ix.add(r, p)
	return r, p, true
}

func (c *compiler) preset(e Entry) {
	text, ok := PresetText(e.Text)
	if !ok {
		c.errs.add(e.Pos, suggestWord(e.Text, PresetNames()), "there is no preset %q", e.Text)
		return
	}
	if c.presets[e.Text] {
		return
	}
	if c.presets == nil {
		c.presets = make(map[string]bool)
	}
	c.presets[e.Text] = true
	c.p.presets = append(c.p.presets, e.Text)
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			c.rule(Entry{Text: line, Pos: Pos{File: presetFile + e.Text, Line: i + 1, Column: 1}}, false)
		}
	}
}

// hosts compiles the hosts entries of one document, except for names that an
// earlier document has settled.
func (c *compiler) hosts(entries []Entry) {
	mine := make(map[Host]bool)
	for _, e := range entries {
		h, addrs, wrong := parseHostsEntry(e)
		c.errs.merge(wrong)
		if _, settled := c.p.static[h]; h.IsZero() || settled && !mine[h] {
			continue
		}
		mine[h] = true
		for _, a := range addrs {
			if !slices.Contains(c.p.static[h], a) {
				c.p.static[h] = append(c.p.static[h], a)
			}
		}
	}
}

// parseHostsEntry reads NAME=ADDR[,ADDR...]. Addresses that are wrong are left
// out and reported; the zero Host means that the name is.
func parseHostsEntry(e Entry) (h Host, addrs []netip.Addr, wrong problems) {
	name, list, ok := strings.Cut(e.Text, "=")
	if !ok {
		wrong.add(e.Pos, "write NAME=ADDR, such as db.internal=10.0.0.5", "hosts entry %q has no =", e.Text)
		return Host{}, nil, wrong
	}
	h, err := ParseHost(strings.TrimSpace(name))
	if err != nil || h.Name() == "" {
		wrong.add(e.Pos, "write NAME=ADDR, such as db.internal=10.0.0.5", "hosts entry %q does not begin with a host name", e.Text)
		return Host{}, nil, wrong
	}
	for item := range strings.SplitSeq(list, ",") {
		text := strings.TrimSpace(item)
		a, err := ParseHost(text)
		if err != nil || !a.Addr().IsValid() {
			wrong.add(e.Pos, "write an IPv4 or IPv6 address", "hosts entry %q: %q is not an address", e.Text, text)
			continue
		}
		if why := grammar.Undialable(netip.PrefixFrom(a.Addr(), a.Addr().BitLen())); why != "" {
			wrong.add(e.Pos, "write an address that can be dialled", "hosts entry %q: %s is %s", e.Text, text, why)
			continue
		}
		addrs = append(addrs, a.Addr())
	}
	return h, addrs, wrong
}

// settings takes what d sets and no earlier document did.
func (c *compiler) settings(d *Document) {
	p := c.p
	p.audit = p.audit || d.Audit
	switch d.DNS.Mode {
	case DNSUnset:
	case DNSSynthetic, DNSForward:
		if p.dns.Mode == DNSUnset {
			p.dns.Mode = d.DNS.Mode
		}
	default:
		c.errs.add(Pos{}, "write synthetic or forward", "dns mode %q is not known", d.DNS.Mode)
	}
	if len(p.dns.Upstreams) == 0 {
		p.dns.Upstreams = slices.Clone(d.DNS.Upstreams)
	}
	for _, e := range d.Intranet {
		h, err := ParseHost(strings.TrimPrefix(e.Text, "."))
		if why := intranet.Check(h.Name()); err != nil || h.Name() == "" || why != "" {
			c.errs.add(e.Pos, "write a name of your own network, such as corp.example.com", "intranet entry %q: %s", e.Text, cmp.Or(why, "it is not a name"))
		}
		p.intranet = append(p.intranet, h.Name())
	}
	p.secrets = append(p.secrets, d.Secrets...)
	for _, name := range d.Limits.outOfRange() {
		c.errs.add(Pos{}, "write a number above 0, or leave it out for the default", "limits.%s is out of range", name)
	}
	if !d.Stricter {
		p.limits.settle(d.Limits)
	}
}

// checkSecrets refuses a secret no rule lets out (it would be asked for and
// never used) and two secrets for one header of one host.
func (c *compiler) checkSecrets() {
	type binding struct {
		to     target
		header string
	}
	taken := make(map[binding]string)
	for _, s := range c.p.secrets {
		c.errs.merge(s.problems())
		for to := range s.targets {
			if f := c.p.lookup(to.Host, to.Port); f.host == nil && f.path == nil && f.raw == nil {
				c.errs.add(s.Pos, "add "+to.String()+" to allow", "secret %s: no rule allows %s on port %d", s.Env, to.Host, to.Port)
			}
			b := binding{to, names.Lower(s.Header)}
			if other, dup := taken[b]; dup {
				c.errs.add(s.Pos, "keep one of the two", "secret %s: header %s towards %s is already filled from %s", s.Env, s.Header, to, other)
			}
			taken[b] = s.Env
			c.p.secretHosts[to] = true
		}
	}
}
