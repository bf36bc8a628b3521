package firewall

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// The modes of a policy, VERCEL.md section 10.
const (
	modeAllowAll = "allow-all"
	modeDenyAll  = "deny-all"
	modeCustom   = "custom"
)

// Bounds of a policy.
const (
	maxDomains = 1000
	maxCIDRs   = 1000
	maxRules   = 100 // of one domain
)

// Policy is a network policy, in whichever form it was sent. Nil allows
// everything. Immutable.
type Policy struct {
	mode    string
	domains []string          // "*" is everything
	rules   map[string][]rule // of some of the domains
	allow   []netip.Prefix
	deny    []netip.Prefix
}

// rule changes requests to a domain.
type rule struct {
	match   *matchBody
	headers map[string]string
}

// policyBody is a policy as it is sent, in the present form or the old one.
type policyBody struct {
	Mode    string          `json:"mode"`
	Allow   json.RawMessage `json:"allow"`
	Subnets *struct {
		Allow []string `json:"allow"`
		Deny  []string `json:"deny"`
	} `json:"subnets"`

	AllowedDomains []string        `json:"allowedDomains"`
	AllowedCIDRs   []string        `json:"allowedCIDRs"`
	DeniedCIDRs    []string        `json:"deniedCIDRs"`
	InjectionRules []injectionBody `json:"injectionRules"`
	ForwardRules   []forwardBody   `json:"forwardRules"`
}

type injectionBody struct {
	Domain  string            `json:"domain"`
	Headers map[string]string `json:"headers"`
	Match   *matchBody        `json:"match"`
}

type forwardBody struct {
	Domain     string     `json:"domain"`
	ForwardURL string     `json:"forwardURL"`
	Match      *matchBody `json:"match"`
}

// ruleBody is one rule in the present form.
type ruleBody struct {
	Match     *matchBody `json:"match"`
	Transform *[]struct {
		Headers map[string]string `json:"headers"`
	} `json:"transform"`
	ForwardURL *string         `json:"forwardURL"`
	Response   json.RawMessage `json:"response"`
}

type matchBody struct {
	Path        *matcher   `json:"path,omitempty"`
	Method      []string   `json:"method,omitempty"`
	QueryString []keyValue `json:"queryString,omitempty"`
	Headers     []keyValue `json:"headers,omitempty"`
}

type keyValue struct {
	Key   *matcher `json:"key,omitempty"`
	Value *matcher `json:"value,omitempty"`
}

type matcher struct {
	Exact      *string `json:"exact,omitempty"`
	StartsWith *string `json:"startsWith,omitempty"`
	Regex      *string `json:"regex,omitempty"`
}

// JSON is a policy as the API shows it: in the old form, without the values of
// headers.
type JSON struct {
	Mode           string          `json:"mode"`
	AllowedDomains []string        `json:"allowedDomains,omitempty"`
	AllowedCIDRs   []string        `json:"allowedCIDRs,omitempty"`
	DeniedCIDRs    []string        `json:"deniedCIDRs,omitempty"`
	InjectionRules []injectionJSON `json:"injectionRules,omitempty"`
}

type injectionJSON struct {
	Domain      string     `json:"domain"`
	HeaderNames []string   `json:"headerNames"`
	Match       *matchBody `json:"match,omitempty"`
}

// JSON returns p as the API shows it; nil for a nil policy.
func (p *Policy) JSON() *JSON {
	if p == nil {
		return nil
	}
	j := &JSON{Mode: p.mode, AllowedDomains: p.domains}
	for _, c := range p.allow {
		j.AllowedCIDRs = append(j.AllowedCIDRs, c.String())
	}
	for _, c := range p.deny {
		j.DeniedCIDRs = append(j.DeniedCIDRs, c.String())
	}
	for _, d := range p.domains {
		for _, r := range p.rules[d] {
			j.InjectionRules = append(j.InjectionRules, injectionJSON{Domain: d, HeaderNames: slices.Sorted(maps.Keys(r.headers)), Match: r.match})
		}
	}
	return j
}

// Parse reads a policy in the present form or the old one. The error is a
// *reply.Error: 400 for an invalid policy, 501 for what this double does not do.
func Parse(raw json.RawMessage) (*Policy, error) {
	var b policyBody
	if err := reply.DecodeBytes(raw, &b); err != nil {
		return nil, err
	}
	old := b.AllowedDomains != nil || b.AllowedCIDRs != nil || b.DeniedCIDRs != nil || b.InjectionRules != nil || b.ForwardRules != nil
	present := b.Allow != nil || b.Subnets != nil
	switch b.Mode {
	case modeAllowAll, modeDenyAll:
		if old || present {
			return nil, reply.BadRequest("Invalid request: `networkPolicy` of mode %q takes nothing else.", b.Mode)
		}
		return &Policy{mode: b.Mode}, nil
	case modeCustom, "":
	default:
		return nil, reply.BadRequest("Invalid request: `networkPolicy.mode` should be equal to one of the allowed values \"allow-all, deny-all, custom\".")
	}
	if old && present || old && b.Mode == "" || present && b.Mode != "" {
		return nil, reply.BadRequest("Invalid request: `networkPolicy` mixes two forms.")
	}
	p := &Policy{mode: modeCustom, rules: map[string][]rule{}}
	var err error
	if old {
		err = p.readOld(&b)
	} else {
		err = p.readPresent(&b)
	}
	if err != nil {
		return nil, err
	}
	if len(p.domains)+len(p.allow)+len(p.deny) == 0 {
		return &Policy{mode: modeDenyAll}, nil
	}
	return p, nil
}

func (p *Policy) readPresent(b *policyBody) error {
	if b.Subnets != nil {
		if err := p.addCIDRs(b.Subnets.Allow, b.Subnets.Deny); err != nil {
			return err
		}
	}
	if b.Allow == nil {
		return nil
	}
	var list []string
	if json.Unmarshal(b.Allow, &list) == nil {
		return p.addDomains(list)
	}
	var byDomain map[string]json.RawMessage
	if err := json.Unmarshal(b.Allow, &byDomain); err != nil {
		return reply.BadRequest("Invalid request: `networkPolicy.allow` should be an array of domains or a map of rules.")
	}
	if err := p.addDomains(slices.Sorted(maps.Keys(byDomain))); err != nil {
		return err
	}
	for _, d := range p.domains {
		var rules []json.RawMessage
		if err := json.Unmarshal(byDomain[d], &rules); err != nil || len(rules) > maxRules {
			return reply.BadRequest("Invalid request: `networkPolicy.allow.%s` should be an array of at most %d rules.", d, maxRules)
		}
		for _, raw := range rules {
			var r ruleBody
			if err := reply.DecodeBytes(raw, &r); err != nil {
				return err
			}
			if err := p.addRule(d, &r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Policy) readOld(b *policyBody) error {
	domains := slices.Clone(b.AllowedDomains)
	for _, r := range b.InjectionRules {
		if !slices.Contains(domains, r.Domain) {
			domains = append(domains, r.Domain)
		}
	}
	if len(b.ForwardRules) > 0 {
		for _, r := range b.ForwardRules {
			if err := firstError(checkForward(r.ForwardURL), r.Match.check(), p.addDomains([]string{r.Domain})); err != nil {
				return err
			}
		}
		return errForward
	}
	if err := p.addDomains(domains); err != nil {
		return err
	}
	for _, r := range b.InjectionRules {
		if err := p.addHeaders(r.Domain, r.Match, r.Headers); err != nil {
			return err
		}
	}
	return p.addCIDRs(b.AllowedCIDRs, b.DeniedCIDRs)
}

// What the engine behind the double cannot do.
var (
	errForward = reply.NewError(http.StatusNotImplemented, "not_implemented", "This double does not forward requests (forwardURL).")
	errRespond = reply.NewError(http.StatusNotImplemented, "not_implemented", "This double does not answer requests by itself (response).")
)

func (p *Policy) addDomains(domains []string) error {
	if len(domains) > maxDomains {
		return reply.BadRequest("Invalid request: `networkPolicy.allow` should NOT have more than %d domains.", maxDomains)
	}
	for _, d := range domains {
		if !validDomain(d) {
			return reply.BadRequest("Invalid request: `networkPolicy.allow` has an invalid domain %q.", d)
		}
		if !slices.Contains(p.domains, d) {
			p.domains = append(p.domains, d)
		}
	}
	return nil
}

func (p *Policy) addCIDRs(allow, deny []string) error {
	for _, l := range []struct {
		texts []string
		to    *[]netip.Prefix
	}{{allow, &p.allow}, {deny, &p.deny}} {
		if len(l.texts) > maxCIDRs {
			return reply.BadRequest("Invalid request: `networkPolicy.subnets` should NOT have more than %d items.", maxCIDRs)
		}
		for _, text := range l.texts {
			c, err := netip.ParsePrefix(text)
			if err != nil {
				return reply.BadRequest("Invalid request: `networkPolicy.subnets` has an invalid CIDR %q.", text)
			}
			*l.to = append(*l.to, c)
		}
	}
	return nil
}

func (p *Policy) addRule(domain string, r *ruleBody) error {
	given := 0
	for _, is := range []bool{r.Transform != nil, r.ForwardURL != nil, r.Response != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return reply.BadRequest("Invalid request: a rule of %q should have exactly one of transform, forwardURL and response.", domain)
	case r.ForwardURL != nil:
		return firstError(checkForward(*r.ForwardURL), r.Match.check(), errForward)
	case r.Response != nil:
		return firstError(checkResponse(r.Response), r.Match.check(), errRespond)
	}
	headers := map[string]string{}
	for _, t := range *r.Transform {
		for k, v := range t.Headers {
			headers[k] = v
		}
	}
	return p.addHeaders(domain, r.Match, headers)
}

func (p *Policy) addHeaders(domain string, m *matchBody, headers map[string]string) error {
	if domain == "*" || strings.Contains(strings.TrimPrefix(domain, "*."), "*") {
		return reply.NewError(http.StatusNotImplemented, "not_implemented", "This double changes requests to a domain, or to all below one, only: not to "+domain+".")
	}
	for k, v := range headers {
		if !validHeader(k) || strings.ContainsAny(v, "\r\n\x00") {
			return reply.BadRequest("Invalid request: `transform.headers` has an invalid header %q.", k)
		}
	}
	if err := m.check(); err != nil {
		return err
	}
	p.rules[domain] = append(p.rules[domain], rule{match: m, headers: headers})
	return nil
}

func validHeader(name string) bool {
	return name != "" && strings.Trim(name, "!#$%&'*+-.^_`|~"+alphanumeric) == ""
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// validDomain reports whether d is a domain, in which whole labels may be "*".
func validDomain(d string) bool {
	for label := range strings.SplitSeq(d, ".") {
		if label != "*" && (strings.Trim(label, alphanumeric+"_-") != "" || label == "" || label[0] == '-' || label[len(label)-1] == '-') {
			return false
		}
	}
	return len(d) <= 253
}
