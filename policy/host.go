package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/names"
	"egressd/policy/internal/special"
)

// Host is one canonical host: a DNS name in lower-case A-labels without the
// root dot, or an IP address. Only [ParseHost] and [HostFromAddr] make one, so
// holding a Host means the spelling is settled. Hosts compare with ==; the zero
// Host stands for "no host" and matches no rule.
type Host struct {
	name string
	addr netip.Addr
}

// HostFromAddr reports the Host of an address literal. IPv4-mapped addresses
// become the IPv4 inside and zones are dropped.
func HostFromAddr(a netip.Addr) Host { return Host{addr: a.Unmap().WithZone("")} }

// Name reports the DNS name, or "" when h is an address or zero.
func (h Host) Name() string { return h.name }

// Addr reports the address, or the zero Addr when h is a name or zero.
func (h Host) Addr() netip.Addr { return h.addr }

// SNI reports the server name that a TLS client which asks for h sends: h itself,
// and the zero Host for an address, which has none (RFC 6066 section 3).
func (h Host) SNI() Host {
	if h.addr.IsValid() {
		return Host{}
	}
	return h
}

// IsZero reports whether h is the zero Host.
func (h Host) IsZero() bool { return h.name == "" && !h.addr.IsValid() }

// IsLocalhost reports whether h is localhost or a name below it, which never
// leaves the machine and means the client's own loopback. RFC 6761 section 6.3.
func (h Host) IsLocalhost() bool {
	return h.name == "localhost" || strings.HasSuffix(h.name, ".localhost")
}

// String reports the canonical spelling, without brackets.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// MarshalText spells h as String does, so that documents can be sent.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads h as [ParseHost] does; empty text is the zero Host.
func (h *Host) UnmarshalText(text []byte) (err error) {
	*h = Host{}
	if len(text) > 0 {
		*h, err = ParseHost(string(text))
	}
	return err
}

// ParseHost reads one host as a client may spell it: a name in any case, with
// one trailing dot, in Unicode or A-labels; an IPv4 address in dotted decimal;
// an IPv6 address with or without brackets. IPv4-mapped IPv6 becomes the IPv4
// inside. Everything that two parsers could read in two ways is an error.
//
// Threat: a client spells a host so that the judge sees one host and the
// resolver another (octal or one-number IPv4, zones, U+212A, NUL, userinfo).
// One canonical spelling, or an error, leaves nothing to guess.
func ParseHost(s string) (Host, error) {
	name, addr, err := names.ParseHost(s)
	return Host{name: name, addr: addr}, err
}

// ParseAuthority reads "host:port" (RFC 9110 section 7.2.3, authority-form).
// The port is mandatory, IPv6 addresses need brackets, and nothing else may
// have them.
func ParseAuthority(s string) (Host, uint16, error) {
	host, port, err := splitAuthority(s)
	if err != nil {
		return Host{}, 0, err
	}
	h, err := ParseHost(host)
	if err != nil {
		return Host{}, 0, err
	}
	n, err := grammar.ParsePort(port)
	if err != nil {
		return Host{}, 0, err
	}
	return h, n, nil
}

func splitAuthority(s string) (host, port string, err error) {
	i := strings.LastIndexByte(s, ':')
	switch {
	case i < 0 || strings.HasSuffix(s, "]"):
		return "", "", fmt.Errorf("%q has no port", s)
	case s[0] != '[' && strings.IndexByte(s, ':') != i:
		return "", "", fmt.Errorf("%q: an IPv6 address needs brackets before its port", s)
	}
	return s[:i], s[i+1:], nil
}

// ClassifyAddr reports the special-purpose class of a, such as "private_use" or
// "link_local"; "" for an ordinary public unicast address, "invalid" for the
// invalid Addr. Addresses that carry an IPv4 address are judged by that.
func ClassifyAddr(a netip.Addr) string { return special.Class(a) }
