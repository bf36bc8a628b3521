// Package grammar reads one rule: what its text means, or what is wrong with it
// and what to write instead.
//
//	p, err := grammar.Parse("*.example.com:8443", false)
package grammar

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"egressd/policy/internal/names"
	"egressd/policy/internal/pathmatch"
	"egressd/policy/internal/suffix"
)

// Implementation constant: the longest rule text.
const maxRuleBytes = 4096

// Parse reads one rule. deny changes one thing: a deny rule without ports
// covers every port.
func Parse(text string, deny bool) (Pattern, error) {
	if names.Plain(text) { // the common case, and all of a long list
		return Plain(text, deny), nil
	}
	if len(text) > maxRuleBytes {
		return Pattern{}, wrong("split it", "rule is longer than %d bytes", maxRuleBytes)
	}
	switch {
	case text == "":
		return Pattern{}, wrong("remove the line or write a host such as api.example.com", "rule is empty")
	case strings.ContainsAny(text, "\r\n\x00"):
		return Pattern{}, wrong("write one rule a line", "rule %q holds a control byte", text)
	}
	if method, rest, ok := strings.Cut(text, " "); ok {
		return parsePathRule(method, strings.TrimLeft(rest, " "))
	}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		return Pattern{}, schemeError(text, scheme, rest)
	}
	if host, _, _ := strings.Cut(text, ":"); strings.EqualFold(host, "raw") && !strings.HasPrefix(text, "raw:") {
		// With its ports such a host would be spelled as what raw: means.
		return Pattern{}, wrong("write raw:HOST:PORT, or the host's whole name", "rule %q: raw is a word of the rules", text)
	}
	raw := false
	rest := text
	if after, ok := strings.CutPrefix(text, "raw:"); ok {
		raw, rest = true, after
	}
	p, err := parseHostRule(rest)
	if err != nil {
		return Pattern{}, err
	}
	p.Raw = raw
	if raw && deny {
		return Pattern{}, wrong("write "+rest, "rule %q: raw: has no meaning in a deny rule", text)
	}
	if raw && !p.Listed {
		return Pattern{}, wrong("write raw:"+rest+":443", "rule %q: raw: needs the port it opens", text)
	}
	if deny && !p.Listed {
		p.Ports = AnyPort
	}
	return p, nil
}

func schemeError(text, scheme, rest string) error {
	host, path, _ := strings.Cut(rest, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	if path != "" {
		return wrong(fmt.Sprintf("write %s for the whole host, or GET https://%s/%s for one path", host, host, path),
			"rule %q is a URL without a method", text)
	}
	return wrong("write "+host, "rule %q: a host rule has no scheme (%s://)", text, scheme)
}

// parseHostRule reads host[:ports], address[:ports] or prefix[:ports].
func parseHostRule(s string) (Pattern, error) {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return Pattern{}, wrong("write "+s[i+1:], "rule %q holds userinfo", s)
	}
	host, portText, listed, err := splitPorts(s)
	if err != nil {
		return Pattern{}, err
	}
	p := Pattern{Ports: WebPorts, Listed: listed}
	if listed {
		if p.Ports, err = parsePorts(portText); err != nil {
			return Pattern{}, wrong("write "+QuoteHost(host)+":443, "+QuoteHost(host)+":8000-8100 or "+QuoteHost(host)+":*",
				"rule %q: %s", s, err)
		}
	}
	if err := p.setHost(host); err != nil {
		return Pattern{}, err
	}
	return p, nil
}

// QuoteHost puts brackets around what needs them before a port.
func QuoteHost(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]"
	}
	return host
}

// splitPorts cuts the port half off a rule. IPv6 addresses and prefixes carry
// ports only in brackets: [2001:db8::1]:443, [2001:db8::/32]:443.
func splitPorts(s string) (host, portText string, listed bool, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", false, wrong("close the bracket: [2001:db8::1]:443", "rule %q has an unclosed bracket", s)
		}
		rest := s[end+1:]
		if rest == "" {
			return s, "", false, nil
		}
		if after, ok := strings.CutPrefix(rest, "/"); ok {
			length, portText, listed := strings.Cut(after, ":")
			fix := "write " + s[1:end] + "/" + length
			if listed {
				fix = "write " + s[:end] + "/" + length + "]:" + portText
			}
			return "", "", false, wrong(fix, "rule %q has its prefix length outside the brackets", s)
		}
		if rest[0] != ':' {
			return "", "", false, wrong("write "+s[:end+1]+":443", "rule %q has text after its bracket", s)
		}
		return s[:end+1], rest[1:], true, nil
	}
	switch strings.Count(s, ":") {
	case 0:
		return s, "", false, nil
	case 1:
		host, portText, _ = strings.Cut(s, ":")
		return host, portText, true, nil
	}
	return s, "", false, nil // IPv6 without ports
}

func (p *Pattern) setHost(host string) error {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner = strings.TrimSuffix(inner, "]")
		if !strings.Contains(inner, ":") {
			return wrong("write "+inner, "rule host %q: brackets are for IPv6 only", host)
		}
		host = inner
	}
	if strings.Contains(host, "/") {
		return p.setPrefix(host)
	}
	switch {
	case host == "":
		return wrong("write a host such as api.example.com", "rule names no host")
	case host == "*":
		return wrong("name the hosts; to let everything pass and record what would have been denied, use audit: true (or --audit)",
			"* alone would allow every host")
	case strings.HasPrefix(host, "*."):
		p.Scope = Below
		return p.setSuffix(host, host[2:])
	case strings.HasPrefix(host, "."):
		p.Scope = Tree
		return p.setSuffix(host, host[1:])
	case strings.Contains(host, "*"):
		return wildcardError(host)
	}
	return p.setExact(host)
}

func wildcardError(host string) error {
	fix := "write the exact host, or a domain and all below it: *.example.com"
	last := host[strings.LastIndexByte(host, '*')+1:]
	_, base, _ := strings.Cut(last, ".")
	if strings.LastIndexByte(host, '*') == 0 {
		base = last // *example.com
	}
	if name, _, err := names.ParseHost(base); err == nil && !suffix.Public(name) {
		fix = "write *." + base
	}
	return wrong(fix, "rule host %q: * stands only for whole labels at the front", host)
}

// hostFix says how to write a host that ParseHost refuses.
func hostFix(host string) string {
	switch name := names.Lower(strings.TrimSuffix(host, ".")); {
	case strings.Contains(host, "%"):
		return "leave the zone and any percent-encoding out"
	case strings.Contains(host, ":"):
		return "write an IPv6 address with its port as [2001:db8::1]:443"
	case names.Numeric(name[strings.LastIndexByte(name, '.')+1:]):
		return "write an address in plain dotted decimal, such as 203.0.113.7"
	}
	return "write a host such as api.example.com, an address or a prefix"
}

func (p *Pattern) setSuffix(text, base string) error {
	name, _, err := names.ParseHost(base)
	if err != nil {
		return wrong("write *.example.com or .example.com", "rule host %q: %s", text, err)
	}
	if name == "" {
		return wrong("write the address itself or a prefix such as 203.0.113.0/24", "rule host %q: an address has no subdomains", text)
	}
	p.Name = name
	if suffix.Public(p.Name) {
		return wrong("name the domain: *.example."+p.Name, "rule host %q covers a whole public suffix", text)
	}
	return nil
}

func (p *Pattern) setExact(host string) error {
	name, a, err := names.ParseHost(host)
	if err != nil {
		return wrong(hostFix(host), "rule %s", err)
	}
	if a.IsValid() {
		p.Scope, p.Prefix = Addr, netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	p.Scope, p.Name = Exact, name
	return nil
}

func (p *Pattern) setPrefix(text string) error {
	pre, err := netip.ParsePrefix(text)
	if err != nil {
		return wrong("write a prefix such as 203.0.113.0/24 or 2001:db8::/32 (a path needs a method and https://)",
			"rule host %q is not an address prefix", text)
	}
	if pre.Addr().Is4In6() {
		return wrong("write the IPv4 prefix", "rule host %q is IPv4 in IPv6 clothing", text)
	}
	if m := pre.Masked(); m != pre {
		return wrong(fmt.Sprintf("write %s, or %s for that one address", m, pre.Addr()), "rule host %q has host bits set", text)
	}
	p.Scope, p.Prefix = Addr, pre
	return nil
}

// parsePathRule reads METHOD[,METHOD] https://host[:port]/path.
func parsePathRule(methods, url string) (Pattern, error) {
	if url != "" && strings.Trim(url, "0123456789") == "" {
		return Pattern{}, wrong("write "+methods+":"+url, "rule %q: a colon stands between host and port", methods+" "+url)
	}
	list, err := parseMethods(methods)
	if err != nil {
		return Pattern{}, err
	}
	rest, ok := strings.CutPrefix(url, "https://")
	if !ok {
		if after, isHTTP := strings.CutPrefix(url, "http://"); isHTTP {
			return Pattern{}, wrong("write "+methods+" https://"+after, "path rules are written for https only")
		}
		return Pattern{}, wrong("write "+methods+" https://host/path/**", "rule %q has no https:// after its method", methods+" "+url)
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return Pattern{}, wrong("write https://"+rest+"/** for every path, or "+rest+" for the whole host without interception",
			"rule %q has no path", methods+" "+url)
	}
	p, err := parseHostRule(rest[:slash])
	if err != nil {
		return Pattern{}, err
	}
	if !p.Listed {
		p.Ports = Ports{{443, 443}}
	} else if len(p.Ports) != 1 || p.Ports[0].Lo != p.Ports[0].Hi {
		return Pattern{}, wrong("write one rule a port", "rule %q: a path rule takes one port", methods+" "+url)
	} else if p.Ports.Has(80) {
		return Pattern{}, wrong("leave the port out", "rule %q: port 80 speaks plain HTTP, path rules are for https", methods+" "+url)
	}
	if what, fix := pathmatch.CheckPattern(rest[slash:]); what != "" {
		return Pattern{}, wrong(fix, "%s", what)
	}
	p.Path = &Path{Methods: list, Path: rest[slash:]}
	return p, nil
}

// parseMethods reads GET, GET,POST or *. nil means any method.
func parseMethods(s string) ([]string, error) {
	if s == "*" {
		return nil, nil
	}
	var out []string
	for m := range strings.SplitSeq(s, ",") {
		if m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
			return nil, wrong("write one host a rule, or methods in capitals before a URL: GET,POST https://host/path/** (* alone is any method)",
				"rule begins with %q, which is not a list of HTTP methods", s)
		}
		out = append(out, m)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Error is a problem with policy text whose place its finder does not know.
type Error struct{ What, Fix string }

// Error reports "what: how to fix it".
func (e *Error) Error() string {
	if e.Fix == "" {
		return e.What
	}
	return e.What + ": " + e.Fix
}

// wrong reports an Error.
func wrong(fix, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Fix: fix}
}
