package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// canonicalDigest hashes one line a fact: the rules in canonical spelling,
// sorted and without duplicates, then the other sections.
func (p *Policy) canonicalDigest() string {
	h := sha256.New()
	io.WriteString(h, "egressd policy 1\n")
	for _, list := range []struct {
		word  string
		rules []*Rule
	}{{"allow", p.allowRules}, {"deny", p.denyRules}} {
		lines := make([]string, 0, len(list.rules))
		for _, r := range list.rules {
			lines = append(lines, r.pattern().String())
		}
		writeSorted(h, list.word, lines)
	}
	var lines []string
	for host, addrs := range p.static {
		line := host.String()
		for _, a := range slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare) {
			line += " " + a.String()
		}
		lines = append(lines, line)
	}
	writeSorted(h, "host", lines)
	lines = nil
	for _, s := range p.secrets {
		for to := range s.targets {
			lines = append(lines, fmt.Sprintf("%q %q %s", s.Env, strings.ToLower(s.Header), to))
		}
	}
	writeSorted(h, "secret", lines)
	mode := p.dns.Mode
	if mode == DNSUnset {
		mode = DNSSynthetic
	}
	fmt.Fprintf(h, "dns %s", mode)
	for _, u := range p.dns.Upstreams { // in order: the first is asked first
		fmt.Fprintf(h, " %q", u.Text)
	}
	io.WriteString(h, "\n")
	writeSorted(h, "limits", p.limits.lines())
	hashFiles(h, p.files)
	fmt.Fprintf(h, "audit %t\n", p.audit)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func writeSorted(w io.Writer, word string, lines []string) {
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		io.WriteString(w, word)
		io.WriteString(w, " ")
		io.WriteString(w, line)
		io.WriteString(w, "\n")
	}
}

// String spells a pattern in full: every port written down.
func (p pattern) String() string {
	var b strings.Builder
	if p.path != nil {
		if len(p.path.methods) == 0 {
			b.WriteString("*")
		}
		b.WriteString(strings.Join(p.path.methods, ","))
		b.WriteString(" https://")
	}
	if p.raw {
		b.WriteString("raw:")
	}
	b.WriteString(quoteHost(p.host()))
	b.WriteString(":" + p.ports.String())
	if p.path != nil {
		b.WriteString(p.path.path)
	}
	return b.String()
}

// host spells which hosts a pattern covers.
func (p pattern) host() string {
	switch p.scope {
	case scopeBelow:
		return "*." + p.name
	case scopeTree:
		return "." + p.name
	case scopeAddr:
		if p.prefix.IsSingleIP() {
			return p.prefix.Addr().String()
		}
		return p.prefix.String()
	case scopeExact:
	}
	return p.name
}
