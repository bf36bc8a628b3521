package firewall

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"egressd/event"
	"egressd/policy"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// discard drops events. The engine needs a sink: it denies what it cannot record.
type discard struct{}

func (discard) Emit(event.Event) error { return nil }

func (c *Config) events() event.Sink {
	if c.Events == nil {
		return discard{}
	}
	return c.Events
}

// Ports and rules of a named host. Port 80 is left out: nothing in plain HTTP
// proves the name to the hosted firewall.
const (
	exceptHTTP  = ":1-79,81-65535"
	httpPort    = 80
	defaultTLS  = 443
	everything4 = "raw:0.0.0.0/0:*"
	everything6 = "raw:[::/0]:*"
)

// compile turns p into a policy of this project. What its rules cannot express is
// decided by admits.
func (c *Config) compile(p *Policy) (*policy.Policy, error) {
	doc := &policy.Document{}
	add := func(list *[]policy.Entry, texts ...string) {
		for _, t := range texts {
			*list = append(*list, policy.Entry{Text: t, Pos: policy.Pos{File: "networkPolicy", Line: len(*list) + 1}})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		var addrs []string
		for _, a := range c.Hosts[name] {
			addrs = append(addrs, a.String())
		}
		add(&doc.Hosts, name+"="+strings.Join(addrs, ","))
	}
	if p.everything() {
		add(&doc.Allow, everything4, everything6)
	}
	if p != nil {
		for _, d := range p.domains {
			if !expressible(d) {
				continue
			}
			add(&doc.Allow, strings.ToLower(d)+exceptHTTP)
			if len(p.rules[d]) == 0 {
				continue
			}
			for _, port := range append([]uint16{defaultTLS}, c.TLSPorts...) {
				add(&doc.Allow, fmt.Sprintf("* https://%s:%d/**", strings.ToLower(d), port))
			}
		}
		for _, c := range p.allow {
			add(&doc.Allow, "raw:"+prefixText(c)+":*")
		}
		for _, c := range p.deny {
			add(&doc.Deny, prefixText(c)+":*")
		}
	}
	compiled, err := policy.Compile(doc)
	if err != nil {
		return nil, reply.BadRequest("Invalid request: `networkPolicy`: %v.", err)
	}
	return compiled, nil
}

func prefixText(p netip.Prefix) string {
	if p = p.Masked(); p.Addr().Is4() {
		return p.String()
	}
	return "[" + p.String() + "]"
}

// expressible reports whether a rule of ours can state domain.
func expressible(domain string) bool {
	_, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: strings.ToLower(domain) + exceptHTTP}}})
	return err == nil
}

func (p *Policy) everything() bool {
	return p == nil || p.mode == modeAllowAll || slices.Contains(p.domains, "*")
}

// asks reports whether admits decides some of p.
func (p *Policy) asks() bool {
	return p.everything() || len(p.allow) > 0 || slices.ContainsFunc(p.domains, func(d string) bool { return !expressible(d) })
}

// admits decides requests that no rule of the compiled policy covers.
func (c *Config) admits(ctx context.Context, p *Policy, r policy.Request) bool {
	name := r.Host.Name()
	if p.everything() {
		return true
	}
	if name == "" {
		return false
	}
	for _, d := range p.domains {
		if r.Port != httpPort && covers(d, name) {
			return true
		}
	}
	if len(p.allow) == 0 {
		return false
	}
	// Subnets count before names: a name that resolves into one is open.
	addrs := c.Hosts[name]
	if len(addrs) == 0 && c.Resolver != nil {
		addrs, _ = c.Resolver.Lookup(ctx, r.Host) // without an answer it is in no subnet
	}
	for _, a := range addrs {
		if !slices.ContainsFunc(p.allow, func(c netip.Prefix) bool { return c.Contains(a.Unmap()) }) {
			return false
		}
	}
	return len(addrs) > 0
}

// covers reports whether domain, which may contain wildcards, matches name. A "*"
// at the front is any number of labels; elsewhere it is exactly one.
func covers(domain, name string) bool {
	domain, name = strings.ToLower(domain), strings.ToLower(name)
	if domain == "*" {
		return true
	}
	want, have := strings.Split(domain, "."), strings.Split(name, ".")
	if want[0] == "*" {
		if len(have) < len(want) {
			return false
		}
		want, have = want[1:], have[len(have)-len(want)+1:]
	}
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != have[i] || have[i] == "" {
			return false
		}
	}
	return true
}
