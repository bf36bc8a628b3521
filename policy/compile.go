package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// Compile joins documents into one policy, loading the presets they name. All
// rules count whatever document they come from; hosts entries and single
// settings (dns mode, limits) of a later document replace those of an earlier
// one; audit is on when any document turns it on. No documents, or empty ones,
// make a policy that denies everything. Errors list every problem.
func Compile(docs ...*Document) (*Policy, error) {
	c := &compiler{p: &Policy{loaded: true, static: make(map[Host][]netip.Addr), secretHosts: make(map[Host]bool)}}
	allows, denies := 0, 0
	for _, d := range docs {
		if d != nil {
			allows, denies = allows+len(d.Allow), denies+len(d.Deny)
		}
	}
	c.p.allow, c.p.deny = newIndex(allows), newIndex(denies)
	for _, d := range docs {
		if d != nil {
			c.document(d)
		}
	}
	c.checkSecrets()
	if err := c.errs.err(); err != nil {
		return nil, err
	}
	c.p.digest = lazyDigest(c.p.canonicalDigest)
	return c.p, nil
}

type compiler struct {
	p       *Policy
	errs    problems
	presets map[string]bool
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
	for _, e := range d.Presets {
		c.preset(e)
	}
	c.hosts(d.Hosts)
	c.settings(d)
}

// rule compiles one entry into its list.
func (c *compiler) rule(e Entry, deny bool) (*Rule, pattern, bool) {
	p, err := parseRule(e.Text, deny)
	if err != nil {
		c.errs.addError(e.Pos, err)
		return nil, pattern{}, false
	}
	ix, list := c.p.allow, &c.p.allowRules
	if deny {
		ix, list = c.p.deny, &c.p.denyRules
	}
	r := &Rule{Text: e.Text, Pos: e.Pos, Index: len(*list), Deny: deny}
	*list = append(*list, r)
	ix.add(r, p)
	return r, p, true
}

// checkReachable refuses an allow rule that can never match: one for an
// address nobody can dial, or one that deny rules of the same document cover
// whole. A deny in another document is a deliberate override.
func (c *compiler) checkReachable(r *Rule, p pattern, firstDeny int) {
	if p.scope == scopeAddr {
		if why := undialable(p.prefix); why != "" {
			c.errs.add(r.Pos, "remove it", "allow rule %q can never match: it is %s", r.Text, why)
			return
		}
	}
	if deny := c.shadow(p, firstDeny); deny != nil {
		c.errs.add(r.Pos, "remove one of the two", "allow rule %q can never match: deny rule %q (%s) covers all of it", r.Text, deny.Text, deny.Pos)
	}
}

// undialable says why no TCP connection can go to any address of pre.
func undialable(pre netip.Prefix) string {
	a := pre.Addr()
	switch {
	case a.IsMulticast() && (a.Is4() && pre.Bits() >= 4 || a.Is6() && pre.Bits() >= 8):
		return "multicast, which TCP cannot reach"
	case a.IsUnspecified() && pre.IsSingleIP():
		return "the unspecified address, which is no destination"
	case a.Is4() && a.As4()[0] == 0 && pre.Bits() >= 8:
		return "in 0.0.0.0/8, which is no destination"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address, which TCP cannot reach"
	}
	return ""
}

// shadow reports a deny rule (of those filed from firstDeny on) that covers
// all hosts and ports of p.
func (c *compiler) shadow(p pattern, firstDeny int) *Rule {
	ix := c.p.deny
	if len(ix.rules) == firstDeny {
		return nil
	}
	covers := func(head int32, ok bool) *Rule {
		for i := head; ok && i >= 0; i = ix.rules[i].next {
			d := &ix.rules[i]
			if int(i) >= firstDeny && coversPorts(d.ports, p.ports) && coversPath(d.path, p.path) {
				return d.rule
			}
		}
		return nil
	}
	if p.scope == scopeAddr {
		for bits := p.prefix.Bits(); bits >= 0; bits-- {
			pre, _ := p.prefix.Addr().Prefix(bits) // bits fit: they count down from a valid prefix
			head, ok := ix.addrs[pre]
			if r := covers(head, ok); r != nil {
				return r
			}
		}
		return nil
	}
	// The apex half, then the subdomain half.
	var apex *Rule
	if p.scope != scopeBelow {
		head, ok := ix.exact[p.name]
		apex = covers(head, ok)
	}
	parent := p.name
	if p.scope == scopeExact {
		_, parent, _ = strings.Cut(p.name, ".")
	}
	for ; parent != ""; _, parent, _ = strings.Cut(parent, ".") {
		head, ok := ix.below[parent]
		r := covers(head, ok)
		if r == nil {
			continue
		}
		if p.scope == scopeTree && parent == p.name && apex == nil {
			continue // *.x denied, x itself is not
		}
		return r
	}
	if p.scope == scopeExact {
		return apex
	}
	return nil
}

func coversPorts(outer, inner ports) bool {
	return !slices.ContainsFunc(inner, func(want portRange) bool {
		return !slices.ContainsFunc(outer, func(have portRange) bool { return have.lo <= want.lo && want.hi <= have.hi })
	})
}

func coversPath(outer, inner *pathRule) bool {
	if outer == nil {
		return true
	}
	if inner == nil || outer.path != "/**" && outer.path != inner.path {
		return false
	}
	if len(outer.methods) == 0 {
		return true
	}
	return len(inner.methods) > 0 && !slices.ContainsFunc(inner.methods, func(m string) bool { return !outer.hasMethod(m) })
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
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			c.rule(Entry{Text: line, Pos: Pos{File: "preset:" + e.Text, Line: i + 1, Column: 1}}, false)
		}
	}
}

// hosts compiles the hosts entries of one document; they replace what earlier
// documents said about the same names.
func (c *compiler) hosts(entries []Entry) {
	mine := make(map[Host]bool)
	for _, e := range entries {
		name, list, ok := strings.Cut(e.Text, "=")
		if !ok {
			c.errs.add(e.Pos, "write NAME=ADDR, such as db.internal=10.0.0.5", "hosts entry %q has no =", e.Text)
			continue
		}
		h, err := ParseHost(strings.TrimSpace(name))
		if err != nil || h.Name() == "" {
			c.errs.add(e.Pos, "write NAME=ADDR, such as db.internal=10.0.0.5", "hosts entry %q does not begin with a host name", e.Text)
			continue
		}
		if !mine[h] {
			mine[h] = true
			delete(c.p.static, h)
		}
		for item := range strings.SplitSeq(list, ",") {
			c.hostAddr(e, h, strings.TrimSpace(item))
		}
	}
}

func (c *compiler) hostAddr(e Entry, h Host, text string) {
	a, err := ParseHost(text)
	if err != nil || !a.Addr().IsValid() {
		c.errs.add(e.Pos, "write an IPv4 or IPv6 address", "hosts entry %q: %q is no address", e.Text, text)
		return
	}
	if why := undialable(netip.PrefixFrom(a.Addr(), a.Addr().BitLen())); why != "" {
		c.errs.add(e.Pos, "write an address that can be dialled", "hosts entry %q: %s is %s", e.Text, text, why)
		return
	}
	if !slices.Contains(c.p.static[h], a.Addr()) {
		c.p.static[h] = append(c.p.static[h], a.Addr())
	}
}

// settings takes what is set in d over what earlier documents set.
func (c *compiler) settings(d *Document) {
	p := c.p
	p.audit = p.audit || d.Audit
	switch d.DNS.Mode {
	case "":
	case "synthetic", "forward":
		p.dns.Mode = d.DNS.Mode
	default:
		c.errs.add(Pos{}, "write synthetic or forward", "dns mode %q is not known", d.DNS.Mode)
	}
	if len(d.DNS.Upstreams) > 0 {
		p.dns.Upstreams = slices.Clone(d.DNS.Upstreams)
	}
	p.secrets = append(p.secrets, d.Secrets...)
	replace(&p.limits.Connections, d.Limits.Connections)
	replace(&p.limits.ConnectionsPerClient, d.Limits.ConnectionsPerClient)
	replace(&p.limits.RatePerSecond, d.Limits.RatePerSecond)
	replace(&p.limits.BytesPerFlow, d.Limits.BytesPerFlow)
	replace(&p.limits.MaxDurationSeconds, d.Limits.MaxDurationSeconds)
	replace(&p.limits.IdleTimeoutSeconds, d.Limits.IdleTimeoutSeconds)
	replace(&p.limits.HeadBytes, d.Limits.HeadBytes)
}

func replace[N int | int64 | float64](old *N, set N) {
	if set != 0 {
		*old = set
	}
}

// checkSecrets refuses a secret no rule lets out: it would be asked for and
// never used.
func (c *compiler) checkSecrets() {
	for _, s := range c.p.secrets {
		for _, h := range s.Hosts {
			f := c.p.lookup(h, 443)
			if f.host == nil && f.path == nil && f.raw == nil {
				c.errs.add(s.Pos, "add "+h.String()+" to allow", "secret %s: no rule allows %s on port 443", s.Env, h)
			}
			c.p.secretHosts[h] = true
		}
	}
}
