// Package network translates a policy into the terms of a Vercel Sandbox, where
// that is possible without allowing more:
//
//	net, err := network.Translate(policy, secret) // err names every rule that cannot be kept
//
// Vercel judges TLS by the name in its ClientHello and other traffic by address.
// It knows no ports, protocols, methods or paths, and cannot deny a name below
// one that is allowed. A rule that needs one of those is refused by name: the run
// does not start with a wider policy.
package network

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"egressd/policy"
	"egressd/sandbox"
)

// Isolation names the tier in errors and events.
const Isolation = "vercel-sandbox"

// Network is a policy in Vercel's terms. The zero Network denies everything.
type Network struct {
	All   bool     // everything is allowed
	Names []string // "api.example.com", "*.example.com": names below it, at any depth

	AllowNets, DenyNets []netip.Prefix

	// Headers are added to requests to a name, outside the sandbox: name, header,
	// value. They hold secrets.
	Headers map[string]map[string]string

	Notes []string // differences from the other tiers, for the user
}

// Denies reports a policy that allows nothing.
func (n *Network) Denies() bool { return !n.All && len(n.Names) == 0 && len(n.AllowNets) == 0 }

// Translate expresses p in Vercel's terms. secret reports the value behind a
// variable of the policy's secrets; nil: there is none. The error is a
// *sandbox.CapabilityError that names every rule that Vercel cannot enforce as
// strictly.
func Translate(p *policy.Policy, secret func(env string) (value string, ok bool)) (*Network, error) {
	return inTerms(p, secret, false)
}

// TranslateOuter is Translate for a run with a gate inside, see package inside: of a
// rule that only this gate can hold (ports, methods and paths of a name) Vercel gets
// the name, and Notes say so.
func TranslateOuter(p *policy.Policy, secret func(env string) (value string, ok bool)) (*Network, error) {
	return inTerms(p, secret, true)
}

func inTerms(p *policy.Policy, secret func(env string) (value string, ok bool), inside bool) (*Network, error) {
	t := &translator{n: &Network{Headers: map[string]map[string]string{}}, inside: inside}
	if p.Audit() {
		t.n.All = true
		t.n.Notes = append(t.n.Notes, "--audit: Vercel lets everything out, and tells nobody what would have been denied")
	}
	allow, deny := p.Rules()
	for _, r := range allow {
		t.allow(r)
	}
	for _, r := range deny {
		t.deny(r, allow)
	}
	t.settings(p)
	t.secrets(p, secret)
	if len(t.wrong) > 0 {
		fix := "change these rules, or run in another tier: --tier process"
		if t.finer {
			fix += "\n  or let an egressd there hold ports, methods and paths for programs that keep to their proxy variables: --gate-inside FILE"
		}
		return nil, &sandbox.CapabilityError{
			Isolation: Isolation,
			What:      "Vercel cannot enforce this policy as strictly as it is written:\n  " + strings.Join(t.wrong, "\n  "),
			Fix:       fix,
		}
	}
	if t.n.All {
		t.n.Names, t.n.AllowNets = nil, nil
	}
	return t.n, nil
}

type translator struct {
	n      *Network
	wrong  []string
	inside bool // what is finer than a name is held by a gate inside
	finer  bool // it would be, were there one
}

// refuse records a rule that Vercel cannot express.
func (t *translator) refuse(r *policy.Rule, why string) {
	where := r.Pos.File
	if r.Pos.Line > 0 && r.Pos.Column > 0 {
		where = fmt.Sprintf("%s:%d", r.Pos.File, r.Pos.Line)
	}
	if where != "" {
		where = " (" + where + ")"
	}
	t.wrong = append(t.wrong, fmt.Sprintf("%s%s: %s", r.Text, where, why))
}

func (t *translator) allow(r *policy.Rule) {
	reach := r.Reach()
	finer := reach.Name != "" && !reach.Raw && (reach.Requests || reach.PortsListed)
	t.finer = t.finer || finer && !t.inside
	switch {
	case finer && t.inside:
		t.note(r.Text + ": held by egressd in the sandbox alone, which a program there can go around; Vercel lets TLS to " + reach.Name + " out whole")
		t.addReach(reach)
	case reach.Requests:
		t.refuse(r, "it does not tell methods or paths apart; allow the host")
	case reach.Raw:
		t.refuse(r, "to a name it lets only TLS out, judged by its SNI")
	case reach.Name != "" && reach.PortsListed:
		t.refuse(r, "it does not tell ports apart; leave them out")
	case reach.Name != "":
		t.addReach(reach)
	case reach.PortsListed && !reach.AnyPort:
		t.refuse(r, "it does not tell ports apart; leave them out, or write :*")
	case reach.Prefix.IsValid():
		if !slices.Contains(t.n.AllowNets, reach.Prefix) {
			t.n.AllowNets = append(t.n.AllowNets, reach.Prefix)
		}
		t.note("with an address rule Vercel answers every DNS question, and lets every port of those addresses out")
	default:
		t.refuse(r, "it is about nothing that Vercel knows")
	}
}

func (t *translator) addReach(reach policy.Reach) {
	if reach.Apex {
		t.add(reach.Name)
	}
	if reach.Below {
		t.add("*." + reach.Name)
	}
}

func (t *translator) add(name string) {
	if !slices.Contains(t.n.Names, name) {
		t.n.Names = append(t.n.Names, name)
	}
}

func (t *translator) note(s string) {
	if !slices.Contains(t.n.Notes, s) {
		t.n.Notes = append(t.n.Notes, s)
	}
}

// deny keeps rules about addresses, and drops those about names that no rule
// allows.
func (t *translator) deny(r *policy.Rule, allow []*policy.Rule) {
	reach := r.Reach()
	switch {
	case reach.Prefix.IsValid() && reach.AnyPort:
		if !slices.Contains(t.n.DenyNets, reach.Prefix) {
			t.n.DenyNets = append(t.n.DenyNets, reach.Prefix)
		}
	case reach.Prefix.IsValid():
		t.refuse(r, "it does not tell ports apart; a deny rule of all ports leaves them out")
	case t.n.All:
		t.refuse(r, "it cannot deny a name while everything else is allowed")
	case slices.ContainsFunc(allow, func(a *policy.Rule) bool { return overlap(a.Reach(), reach) }):
		t.refuse(r, "it cannot deny a name that another rule allows; allow the names one by one")
	}
}

// overlap reports whether both can match one name. It does not ask whether a name
// resolves to an address.
func overlap(a, b policy.Reach) bool {
	if a.Name == "" || b.Name == "" {
		return false
	}
	return a.Name == b.Name && (a.Apex && b.Apex || a.Below && b.Below) ||
		a.Below && strings.HasSuffix(b.Name, "."+a.Name) || b.Below && strings.HasSuffix(a.Name, "."+b.Name)
}

// settings refuses the policy's other sections, which Vercel cannot honour.
func (t *translator) settings(p *policy.Policy) {
	if dns := p.DNS(); dns.Mode != policy.DNSUnset || len(dns.Upstreams) > 0 {
		t.wrong = append(t.wrong, "dns: names are resolved by Vercel")
	}
	if p.HasHosts() {
		t.wrong = append(t.wrong, "hosts: names are resolved by Vercel")
	}
	if p.Limits() != (policy.Limits{}) {
		t.wrong = append(t.wrong, "limits: connections are not counted by Vercel")
	}
}

// secrets turns secrets into headers that are added outside the sandbox.
func (t *translator) secrets(p *policy.Policy, value func(env string) (string, bool)) {
	for _, s := range p.Secrets() {
		v, ok := "", false
		if value != nil {
			v, ok = value(s.Env)
		}
		if !ok {
			t.wrong = append(t.wrong, "secret "+s.Env+": it has no value here")
			continue
		}
		for _, to := range s.Others {
			t.wrong = append(t.wrong, "secret "+s.Env+" towards "+to.String()+": Vercel adds headers on port 443 alone")
		}
		header := strings.ToLower(s.Header)
		if header == "authorization" && !strings.Contains(v, " ") {
			v = "Bearer " + v
		}
		for _, h := range s.Hosts {
			if t.n.Headers[h.String()] == nil {
				t.n.Headers[h.String()] = map[string]string{}
			}
			t.n.Headers[h.String()][header] = v
			// The name itself has to be spelled, whatever wildcard allows it.
			t.add(h.String())
		}
		t.note("secret " + s.Env + ": Vercel puts the header on every request to its hosts, whether a program asks for it or not")
	}
}
