package policy

import (
	"net/netip"
	"slices"
	"strings"

	"egressd/policy/internal/pathmatch"
)

// Rule is one compiled rule. Read-only.
type Rule struct {
	Text string
	Pos  Pos

	// Index counts the rules of one list (allow or deny, as Deny says) from 0 in
	// source order.
	Index int
	Deny  bool

	parsed *pattern // what Text means; nil for a plain host name, which means itself
}

// pattern reports what the rule means. Rules of a list of a million plain names
// carry no pattern each: it is made again from the name.
func (r *Rule) pattern() pattern {
	if r.parsed != nil {
		return *r.parsed
	}
	return plainPattern(r.Text, r.Deny)
}

// plainPattern is what a plain host name means as a rule: that host, on the web
// ports when it is allowed, on every port when it is denied.
func plainPattern(name string, deny bool) pattern {
	p := pattern{scope: scopeExact, name: name, ports: webPorts}
	if deny {
		p.ports = anyPort
	}
	return p
}

// Pos is where a rule was written: a file with line and column (1-based), or a
// flag ("--allow") with Line as its ordinal and Column 0.
type Pos struct {
	File         string
	Line, Column int
}

// scope says which hosts a pattern covers.
type scope uint8

const (
	scopeExact scope = iota // name
	scopeBelow              // *.name: subdomains at any depth, not the apex
	scopeTree               // .name: the apex and its subdomains
	scopeAddr               // prefix
)

// pattern is what one rule's text means.
type pattern struct {
	scope  scope
	raw    bool   // raw: nothing is asked of the wire
	listed bool   // ports were written down
	name   string // for the scopes that are names
	prefix netip.Prefix
	ports  ports
	path   *pathRule // nil for rules about whole hosts
}

// pathRule is the method and path half of a rule.
type pathRule struct {
	methods []string // empty: any method
	path    string
}

// hasMethod reports whether m is one of the rule's methods, exactly.
func (p *pathRule) hasMethod(m string) bool {
	return len(p.methods) == 0 || slices.Contains(p.methods, m)
}

// allows reports whether an allow rule of this path covers path.
func (p *pathRule) allows(path string) bool { return pathmatch.Allows(p.path, path) }

// forbids reports whether a deny rule of this kind covers the request, its
// method in any case: some origins take get for GET.
func (p *pathRule) forbids(method, path string) bool {
	same := func(m string) bool { return strings.EqualFold(m, method) }
	return (len(p.methods) == 0 || slices.ContainsFunc(p.methods, same)) && pathmatch.Denies(p.path, path)
}
