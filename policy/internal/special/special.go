// Package special knows the special-purpose addresses: private, loopback,
// link-local and the like, also where an IPv6 address carries an IPv4 one.
//
//	special.Class(netip.MustParseAddr("64:ff9b::10.0.0.1")) // "private_use"
package special

import (
	_ "embed"
	"encoding/csv"
	"net/netip"
	"sort"
	"strings"
	"sync"
)

// The IANA special-purpose address registries as published (CC0), and the few
// non-unicast or deprecated blocks they leave out, with the RFC that defines
// each.
//
//go:embed iana/ipv4-special-registry.csv
var ianaIPv4 string

//go:embed iana/ipv6-special-registry.csv
var ianaIPv6 string

//go:embed iana/beyond-registry.csv
var beyondRegistry string

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056
	teredo    = netip.MustParsePrefix("2001::/32")    // RFC 4380
	compat    = netip.MustParsePrefix("::/96")        // RFC 4291 section 2.5.5.1
)

// block is one special-purpose range and the name of its class.
type block struct {
	prefix netip.Prefix
	class  string
}

// blocks parses the embedded registries once: narrow ranges before wide ones,
// so that the first hit is the most specific.
var blocks = sync.OnceValue(func() []block {
	var all []block
	for _, data := range []string{ianaIPv4, ianaIPv6, beyondRegistry} {
		all = append(all, parseRegistry(data)...)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].prefix.Bits() > all[j].prefix.Bits() })
	return all
})

// parseRegistry reads the first two columns of a registry. The data is part of
// the program, so a bad line is a bug and a test reads it whole.
func parseRegistry(data string) []block {
	rows, err := csv.NewReader(strings.NewReader(data)).ReadAll()
	if err != nil {
		panic("policy: embedded address registry: " + err.Error())
	}
	var out []block
	for _, row := range rows[1:] {
		for field := range strings.SplitSeq(row[0], ",") {
			text, _, _ := strings.Cut(strings.TrimSpace(field), " ") // drop footnote marks
			out = append(out, block{netip.MustParsePrefix(text), className(row[1])})
		}
	}
	return out
}

// className turns a registry's name into a word fit for events and messages.
func className(name string) string {
	if i := strings.IndexByte(name, '('); i > 0 && strings.HasPrefix(name, "Documentation") {
		name = name[:i]
	}
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

// Class reports the special-purpose class of a, such as "private_use"
// or "link_local" ("" for an ordinary public unicast address). Addresses that
// carry an IPv4 address (IPv4-mapped, IPv4-compatible, NAT64, 6to4, Teredo)
// are judged by the IPv4 inside; an IPv4-compatible one is special whatever is
// inside, since nothing routes it. Every block of the registries counts, the
// ones marked globally reachable included: none of them is an origin. The
// invalid Addr is "invalid".
//
// Threat: an allowed name resolves to 169.254.169.254, to a neighbour in
// 10/8, or to either in an IPv6 costume. Such an address is refused unless a
// rule or a hosts entry names it. Left over: NAT64 prefixes an operator chose
// outside the well-known one cannot be recognised.
func Class(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return "invalid"
	}
	if a4, b4, ok := Embedded(a); ok {
		if class := classify(a4); class != "" {
			return class
		}
		if class := classify(b4); class != "" || !compat.Contains(a) {
			return class
		}
	}
	return classify(a)
}

func classify(a netip.Addr) string {
	for _, b := range blocks() {
		if b.prefix.Contains(a) {
			return b.class
		}
	}
	return ""
}

// Embedded reports the IPv4 addresses that an IPv6 address carries. Teredo
// carries two (the server and the client, RFC 4380 section 4); elsewhere both
// are the same.
func Embedded(a netip.Addr) (first, second netip.Addr, ok bool) {
	if !a.Is6() {
		return a, a, false
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		first = netip.AddrFrom4([4]byte(b[12:16]))
	case compat.Contains(a) && b[12] != 0:
		// ::/104 stays IPv6: ::, ::1 and their neighbours never were IPv4.
		first = netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(a):
		first = netip.AddrFrom4([4]byte(b[2:6]))
	case teredo.Contains(a):
		first = netip.AddrFrom4([4]byte(b[4:8]))
		return first, netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	default:
		return a, a, false
	}
	return first, first, true
}

// Names reports whether a rule for pre was written for special-purpose
// addresses: the whole prefix lies inside one special-purpose block. 0.0.0.0/0
// does not: it stands for the public Internet and opens no private address.
func Names(pre netip.Prefix) bool {
	a, bits := pre.Addr(), pre.Bits()
	switch {
	case nat64.Contains(a) && bits >= nat64.Bits(), compat.Contains(a) && bits >= compat.Bits()+8:
		first, _, ok := Embedded(a)
		if ok {
			return compat.Contains(a) || insideBlock(netip.PrefixFrom(first, bits-96))
		}
	case sixToFour.Contains(a) && bits >= sixToFour.Bits():
		first, _, _ := Embedded(a)
		return insideBlock(netip.PrefixFrom(first, min(bits-16, 32)))
	case teredo.Contains(a):
		return bits == 128
	}
	return insideBlock(pre)
}

func insideBlock(pre netip.Prefix) bool {
	for _, b := range blocks() {
		if b.prefix.Bits() <= pre.Bits() && b.prefix.Contains(pre.Addr()) {
			return true
		}
	}
	return false
}
