package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	"egressd/policy/internal/special"
)

// Specification constants: RFC 1035 section 2.3.4, without the root dot.
const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// Implementation constant: no spelling of a host that ParseHost accepts is
// longer than this, Unicode included.
const maxHostInputBytes = 1024

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
	switch {
	case s == "":
		return Host{}, errors.New("host is empty")
	case len(s) > maxHostInputBytes:
		return Host{}, fmt.Errorf("host is longer than %d bytes", maxHostInputBytes)
	case s[0] == '[':
		if s[len(s)-1] != ']' {
			return Host{}, fmt.Errorf("host %q has an unclosed bracket", s)
		}
		inner := s[1 : len(s)-1]
		if !strings.Contains(inner, ":") {
			return Host{}, fmt.Errorf("host %q: brackets are for IPv6 addresses only", s)
		}
		return parseIPv6(inner)
	case strings.Contains(s, ":"):
		return parseIPv6(s)
	}
	return parseNameOrIPv4(s)
}

func parseIPv6(s string) (Host, error) {
	if strings.Contains(s, "%") {
		return Host{}, fmt.Errorf("address %q has a zone; zones are not accepted", s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return Host{}, fmt.Errorf("%q is neither a host nor an IPv6 address", s)
	}
	return HostFromAddr(a), nil
}

func parseNameOrIPv4(s string) (Host, error) {
	if plain(s) {
		// The common case: nothing to map, s itself is the canonical name.
		return Host{name: s}, nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Is4() {
		return Host{addr: a}, nil
	}
	name, err := canonicalName(s)
	if err != nil {
		return Host{}, err
	}
	return Host{name: name}, nil
}

// plain reports whether s is already a canonical name that needs no IDNA:
// lower-case letters, digits, hyphens and underscores in well-formed labels,
// none of them an A-label, the last one no number.
func plain(s string) bool {
	if len(s) > maxNameBytes {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if !nameByte(s[i]) {
				return false
			}
			continue
		}
		label := s[start:i]
		if labelProblem(label) != "" || isALabel(label) {
			return false
		}
		if i == len(s) {
			return !numericLabel(label)
		}
		start = i + 1
	}
	return false // unreachable
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func isALabel(label string) bool { return strings.HasPrefix(label, "xn--") }

// labelProblem says what is wrong with the shape of a lower-case ASCII label,
// or "".
func labelProblem(label string) string {
	switch {
	case label == "":
		return "an empty label"
	case len(label) > maxLabelBytes:
		return "a label longer than 63 bytes"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "a label that begins or ends with a hyphen"
	}
	return ""
}

// numericLabel reports whether a last label makes some parsers read the whole
// host as an IPv4 address (WHATWG URL, "ends in a number checker").
func numericLabel(label string) bool {
	digits := true
	for i := 0; i < len(label); i++ {
		digits = digits && '0' <= label[i] && label[i] <= '9'
	}
	if digits {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	if !ok {
		return false
	}
	return strings.Trim(hex, "0123456789abcdef") == ""
}

// canonicalName reads a name that is not yet canonical.
func canonicalName(s string) (string, error) {
	// RFC 1034 section 3.1: one trailing dot is the root label, spelled out.
	name := strings.TrimSuffix(s, ".")
	ascii, err := toASCII(name)
	if err != nil {
		return "", fmt.Errorf("host %q is not a valid name: %w", s, err)
	}
	if len(ascii) > maxNameBytes {
		return "", fmt.Errorf("host %q is longer than %d bytes", s, maxNameBytes)
	}
	last := ""
	for label := range strings.SplitSeq(ascii, ".") {
		if problem := labelProblem(label); problem != "" {
			return "", fmt.Errorf("host %q has %s", s, problem)
		}
		for i := 0; i < len(label); i++ {
			if !nameByte(label[i]) {
				return "", fmt.Errorf("host %q has a byte (%q) that no name has", s, label[i])
			}
		}
		last = label
	}
	if numericLabel(last) {
		return "", fmt.Errorf("host %q looks like an IPv4 address in an odd spelling", s)
	}
	return ascii, nil
}

// toASCII maps a name to lower-case A-labels. Only names that have something
// to map reach IDNA: plain ASCII labels are lowered byte by byte, so that
// underscores and "--" (both common in real names) survive.
func toASCII(name string) (string, error) {
	needsIDNA := false
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c < 0x21 || c == 0x7f:
			return "", fmt.Errorf("a control byte or space (%q)", c)
		case c == '@':
			return "", errors.New("userinfo is not accepted")
		case c == '%':
			return "", errors.New("percent-encoding and zones are not accepted")
		case c >= 0x80:
			needsIDNA = true
		}
	}
	name = lowerASCII(name)
	if !needsIDNA && !strings.HasPrefix(name, "xn--") && !strings.Contains(name, ".xn--") {
		return name, nil
	}
	return strictIDNA(name)
}

// strictIDNA maps by UTS 46 (non-transitional, with the bidi and joiner rules)
// and then insists that the result maps to itself and that every A-label in it
// stands for a label that needed one.
func strictIDNA(name string) (string, error) {
	profile := idna.New(
		idna.MapForLookup(),
		idna.BidiRule(),
		idna.CheckJoiners(true),
		idna.CheckHyphens(false),
		idna.StrictDomainName(false),
		idna.Transitional(false),
	)
	ascii, err := profile.ToASCII(name)
	if err != nil {
		return "", err
	}
	again, err := profile.ToASCII(ascii)
	if err != nil || again != ascii {
		return "", errors.New("it has no single spelling")
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if !isALabel(label) {
			continue
		}
		unicode, err := profile.ToUnicode(label)
		if err != nil {
			return "", err
		}
		if isASCII(unicode) {
			return "", fmt.Errorf("label %q is Punycode for a plain ASCII name", label)
		}
	}
	return ascii, nil
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// lowerASCII lowers A to Z and nothing else: U+212A (the Kelvin sign) and its
// like are IDNA's business, never a case fold's.
func lowerASCII(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
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
	n, err := parsePort(port)
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

// parsePort reads 1 to 65535 in plain decimal: no sign, no leading zero.
func parsePort(s string) (uint16, error) {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || len(s) > 5 {
			return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
		}
		n = n*10 + int(s[i]-'0')
	}
	switch {
	case s == "":
		return 0, errors.New("the port is empty")
	case s[0] == '0' && len(s) > 1:
		return 0, fmt.Errorf("port %q has a leading zero", s)
	case n == 0 || n > 65535:
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
	}
	return uint16(n), nil
}

// ClassifyAddr reports the special-purpose class of a, such as "private_use" or
// "link_local"; "" for an ordinary public unicast address, "invalid" for the
// invalid Addr. Addresses that carry an IPv4 address are judged by that.
func ClassifyAddr(a netip.Addr) string { return special.Class(a) }
