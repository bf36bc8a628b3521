package grammar

import (
	"net/netip"
	"slices"
	"strings"

	"egressd/policy/internal/pathmatch"
)

// Plain is what a plain host name means as a rule: that host, on the web
// ports when it is allowed, on every port when it is denied.
func Plain(name string, deny bool) Pattern {
	p := Pattern{Scope: Exact, Name: name, Ports: WebPorts}
	if deny {
		p.Ports = AnyPort
	}
	return p
}

// Scope says which hosts a pattern covers.
type Scope uint8

const (
	Exact Scope = iota // name
	Below              // *.name: subdomains at any depth, not the apex
	Tree               // .name: the apex and its subdomains
	Addr               // prefix
)

// Pattern is what one rule's text means.
type Pattern struct {
	Scope  Scope
	Raw    bool   // raw: nothing is asked of the wire
	Listed bool   // ports were written down
	Name   string // for the scopes that are names
	Prefix netip.Prefix
	Ports  Ports
	Path   *Path // nil for rules about whole hosts
}

// Path is the method and path half of a rule.
type Path struct {
	Methods []string // empty: any method
	Path    string
}

// HasMethod reports whether m is one of the rule's methods, exactly.
func (p *Path) HasMethod(m string) bool {
	return len(p.Methods) == 0 || slices.Contains(p.Methods, m)
}

// Allows reports whether an allow rule of this path covers path.
func (p *Path) Allows(path string) bool { return pathmatch.Allows(p.Path, path) }

// Forbids reports whether a deny rule of this kind covers the request, its
// method in any case: some origins take get for GET.
func (p *Path) Forbids(method, path string) bool {
	same := func(m string) bool { return strings.EqualFold(m, method) }
	return (len(p.Methods) == 0 || slices.ContainsFunc(p.Methods, same)) && pathmatch.Denies(p.Path, path)
}

// String spells a pattern in full: every port written down.
func (p Pattern) String() string {
	var b strings.Builder
	if p.Path != nil {
		if len(p.Path.Methods) == 0 {
			b.WriteString("*")
		}
		b.WriteString(strings.Join(p.Path.Methods, ","))
		b.WriteString(" https://")
	}
	if p.Raw {
		b.WriteString("raw:")
	}
	b.WriteString(QuoteHost(p.Hosts()))
	b.WriteString(":" + p.Ports.String())
	if p.Path != nil {
		b.WriteString(p.Path.Path)
	}
	return b.String()
}

// Hosts spells which hosts a pattern covers.
func (p Pattern) Hosts() string {
	switch p.Scope {
	case Below:
		return "*." + p.Name
	case Tree:
		return "." + p.Name
	case Addr:
		if p.Prefix.IsSingleIP() {
			return p.Prefix.Addr().String()
		}
		return p.Prefix.String()
	case Exact:
	}
	return p.Name
}

// Undialable says why no TCP connection can go to any address of pre.
func Undialable(pre netip.Prefix) string {
	a := pre.Addr()
	switch {
	case a.IsMulticast() && (a.Is4() && pre.Bits() >= 4 || a.Is6() && pre.Bits() >= 8):
		return "multicast, which TCP cannot reach"
	case a.IsUnspecified() && pre.IsSingleIP():
		return "the unspecified address, which is not a destination"
	case a.Is4() && a.As4()[0] == 0 && pre.Bits() >= 8:
		return "in 0.0.0.0/8, which is not a destination"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address, which TCP cannot reach"
	}
	return ""
}

// CoversPorts reports whether every port of inner is one of outer.
func CoversPorts(outer, inner Ports) bool {
	return !slices.ContainsFunc(inner, func(want Range) bool {
		return !slices.ContainsFunc(outer, func(have Range) bool { return have.Lo <= want.Lo && want.Hi <= have.Hi })
	})
}

// CoversPath reports whether outer is about every request that inner is about; nil
// is about all.
func CoversPath(outer, inner *Path) bool {
	if outer == nil {
		return true
	}
	if inner == nil || outer.Path != "/**" && outer.Path != inner.Path {
		return false
	}
	if len(outer.Methods) == 0 {
		return true
	}
	return len(inner.Methods) > 0 && !slices.ContainsFunc(inner.Methods, func(m string) bool { return !outer.HasMethod(m) })
}
