package names

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Implementation constant: no spelling of a host that ParseHost accepts is
// longer than this, Unicode included.
const maxHostInputBytes = 1024

// ParseHost reads a host as policy.ParseHost does: a name, or an address.
func ParseHost(s string) (name string, addr netip.Addr, err error) {
	switch {
	case s == "":
		return "", netip.Addr{}, errors.New("host is empty")
	case len(s) > maxHostInputBytes:
		return "", netip.Addr{}, fmt.Errorf("host is longer than %d bytes", maxHostInputBytes)
	case s[0] == '[':
		if s[len(s)-1] != ']' {
			return "", netip.Addr{}, fmt.Errorf("host %q has an unclosed bracket", s)
		}
		inner := s[1 : len(s)-1]
		if !strings.Contains(inner, ":") {
			return "", netip.Addr{}, fmt.Errorf("host %q: brackets are for IPv6 addresses only", s)
		}
		return parseIPv6(inner)
	case strings.Contains(s, ":"):
		return parseIPv6(s)
	}
	return parseNameOrIPv4(s)
}

func parseIPv6(s string) (string, netip.Addr, error) {
	if strings.Contains(s, "%") {
		return "", netip.Addr{}, fmt.Errorf("address %q has a zone; zones are not accepted", s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return "", netip.Addr{}, fmt.Errorf("%q is neither a host nor an IPv6 address", s)
	}
	return "", a.Unmap().WithZone(""), nil
}

func parseNameOrIPv4(s string) (string, netip.Addr, error) {
	if Plain(s) {
		// The common case: nothing to map, s itself is the canonical name.
		return s, netip.Addr{}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is4() {
		return "", a, nil
	}
	name, err := Canonical(s)
	if err != nil {
		return "", netip.Addr{}, err
	}
	return name, netip.Addr{}, nil
}
