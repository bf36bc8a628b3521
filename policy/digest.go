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
	writeSorted(h, "list", p.listLines())
	var lines []string
	for host, addrs := range p.static {
		line := host.String()
		for _, a := range slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare) {
			line += " " + a.String()
		}
		lines = append(lines, line)
	}
	writeSorted(h, "host", lines)
	writeSorted(h, "intranet", p.Intranet())
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
	writeSorted(h, "upstream", p.upstream.Lines())
	fmt.Fprintf(h, "audit %t\n", p.audit)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// listLines tell a list file by the SHA-256 of its text: its order, spelling and
// comments make a difference, its name does not.
func (p *Policy) listLines() (lines []string) {
	for _, l := range slices.Concat(p.allow.lists, p.deny.lists) {
		lines = append(lines, fmt.Sprintf("deny=%t %s skipped=%d %x", l.deny, l.table.Format(), l.table.Skipped(), l.table.Sum()))
	}
	return lines
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
