package upstream

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Bypass says what is reached directly although there is an upstream proxy. The zero
// Bypass is empty. It widens nothing: the policy judges what it lists like the rest.
type Bypass struct{ entries []entry }

// entry is one line of the list.
type entry struct {
	name   string       // lower case; "" for addresses
	itself bool         // name counts
	below  bool         // what is below name counts
	prefix netip.Prefix // of addresses
	port   uint16       // 0: any
}

// ParseBypass reads a list of HOST, *.HOST (what is below it), .HOST (both),
// ADDRESS or PREFIX, each with :PORT or for every port.
//
// A name is compared with the name that was asked for, an address with an address
// that was asked for: no look-up decides which way a flow takes.
func ParseBypass(list []string) (Bypass, error) {
	var b Bypass
	for _, text := range list {
		e, err := parseEntry(text)
		if err != nil {
			return Bypass{}, err
		}
		b.entries = append(b.entries, e)
	}
	return b, nil
}

func parseEntry(text string) (e entry, err error) {
	bad := fmt.Errorf("bypass %.80q: write HOST, *.HOST, .HOST, ADDRESS or PREFIX, and :PORT behind it for one port", text)
	rest := text
	if e.prefix, err = parsePrefix(rest); err == nil {
		return e, nil
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		n, err := strconv.ParseUint(rest[i+1:], 10, 16)
		if err != nil || n == 0 {
			return entry{}, bad
		}
		e.port, rest = uint16(n), rest[:i]
		inner := strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]")
		if e.prefix, err = parsePrefix(inner); err == nil && strings.Contains(inner, ":") == (inner != rest) {
			return e, nil
		}
	}
	e.prefix = netip.Prefix{}
	e.itself, e.below = true, false
	switch {
	case strings.HasPrefix(rest, "*."):
		e.itself, e.below, rest = false, true, rest[2:]
	case strings.HasPrefix(rest, "."):
		e.below, rest = true, rest[1:]
	}
	e.name = strings.TrimSuffix(strings.ToLower(rest), ".")
	if !isName(e.name) {
		return entry{}, bad
	}
	return e, nil
}

// parsePrefix reads an address or a prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// isName reports whether s is labels of letters, digits, hyphens and underscores.
// What is all digits and dots is an address that was misspelled.
func isName(s string) bool {
	if s == "" || len(s) > 253 || strings.Trim(s, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// Covers reports whether b lists this destination: a name as package policy spells it,
// or an address.
func (b Bypass) Covers(name string, addr netip.Addr, port uint16) bool {
	addr = addr.Unmap()
	return slices.ContainsFunc(b.entries, func(e entry) bool {
		switch {
		case e.port != 0 && e.port != port:
			return false
		case name == "" || e.name == "":
			return name == "" && e.name == "" && e.prefix.Contains(addr)
		case name == e.name:
			return e.itself
		}
		return e.below && strings.HasSuffix(name, "."+e.name)
	})
}

// NoProxy turns the value of a NO_PROXY variable into a list for ParseBypass: a name
// stands for itself and for what is below it, as in curl. all reports a "*"; unknown
// lists the words that cannot be read, which bypass nothing.
func NoProxy(value string) (list []string, all bool, unknown []string) {
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == ' ' }) {
		if word == "*" {
			return nil, true, nil
		}
		e, err := parseEntry(word)
		switch {
		case err != nil:
			unknown = append(unknown, word)
		case e.name != "":
			list = append(list, "."+strings.TrimPrefix(strings.TrimPrefix(word, "*"), "."))
		default:
			list = append(list, word)
		}
	}
	return list, false, unknown
}
