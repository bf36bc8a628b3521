package dnsfilter

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"egressd/policy"
)

// Ports of the transports. RFC 1035 section 4.2, RFC 7858 section 3.1.
const (
	portDNS = 53
	portDoT = 853
)

// maxSystemUpstreams bounds what is read from one resolv.conf.
const maxSystemUpstreams = 8

// Upstream is one recursive resolver. Only ParseUpstream and SystemUpstreams
// make one; Upstreams compare with ==.
type Upstream struct {
	transport string // "udp" (TCP when the answer is cut), "tcp" or "tls"
	addr      netip.AddrPort
	name      string // tls: the name in the certificate; "": the address
}

// String reports the upstream as ParseUpstream reads it.
func (u Upstream) String() string {
	if u.name != "" {
		return u.transport + "://" + u.name + "@" + u.addr.String()
	}
	return u.transport + "://" + u.addr.String()
}

// ParseUpstream reads one --dns-upstream value: "1.1.1.1", "[2606:4700::1111]:53",
// "udp://192.0.2.1", "tcp://192.0.2.1:53", "tls://192.0.2.1" or
// "tls://dns.example@192.0.2.1:853", where the certificate must be for
// dns.example (without a name: for the address). A resolver is always given by
// address, since nothing could look its name up.
func ParseUpstream(s string) (Upstream, error) {
	u := Upstream{transport: "udp"}
	rest := s
	if scheme, r, ok := strings.Cut(s, "://"); ok {
		u.transport, rest = strings.ToLower(scheme), r
	}
	port := uint16(portDNS)
	switch u.transport {
	case "udp", "tcp":
	case "tls":
		port = portDoT
		if name, r, ok := strings.Cut(rest, "@"); ok {
			h, err := policy.ParseHost(name)
			if err != nil || h.Name() == "" {
				return Upstream{}, fmt.Errorf("DNS upstream %q: %q is not a host name: write tls://NAME@ADDRESS", s, name)
			}
			u.name, rest = h.Name(), r
		}
	default:
		return Upstream{}, fmt.Errorf("DNS upstream %q: unknown transport %q: use udp://, tcp:// or tls://", s, u.transport)
	}
	addr, err := parseAddrPort(rest, port)
	if err != nil {
		return Upstream{}, fmt.Errorf("DNS upstream %q: %w", s, err)
	}
	u.addr = addr
	return u, nil
}

var errNeedAddress = errors.New("give the resolver's address, not a name, like 192.0.2.1:53, [2001:db8::1]:53 or tls://dns.example@192.0.2.1")

// parseAddrPort reads an address with or without brackets and port.
func parseAddrPort(s string, port uint16) (netip.AddrPort, error) {
	host, digits, hasPort := s, "", false
	switch {
	case strings.HasPrefix(s, "["):
		inner, after, ok := strings.Cut(s[1:], "]")
		if !ok || after != "" && after[0] != ':' {
			return netip.AddrPort{}, errNeedAddress
		}
		host = inner
		if after != "" {
			digits, hasPort = after[1:], true
		}
	case strings.Count(s, ":") == 1:
		host, digits, hasPort = strings.Cut(s, ":")
	}
	a, err := netip.ParseAddr(host)
	if err != nil || a.IsUnspecified() || a.IsMulticast() {
		return netip.AddrPort{}, errNeedAddress
	}
	if hasPort {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
			return netip.AddrPort{}, fmt.Errorf("port %q: give a number from 1 to 65535", digits)
		}
		port = uint16(n)
	}
	return netip.AddrPortFrom(a, port), nil
}

// PolicyUpstreams reads the DNS servers that p names, in its order; policy,
// being pure, keeps them as text. None is no error. The first that cannot be
// read is one, with its place.
func PolicyUpstreams(p *policy.Policy) ([]Upstream, error) {
	var ups []Upstream
	for _, e := range p.DNS().Upstreams {
		u, err := ParseUpstream(e.Text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Pos, err)
		}
		ups = append(ups, u)
	}
	return ups, nil
}

// SystemUpstreams reads the nameserver lines of a resolv.conf, with zones on
// link-local addresses, at most eight; search lists and options are left
// aside. No readable line is an error.
func SystemUpstreams(resolvConf []byte) ([]Upstream, error) {
	var ups []Upstream
	lines := bufio.NewScanner(bytes.NewReader(resolvConf))
	for lines.Scan() && len(ups) < maxSystemUpstreams {
		line := lines.Text()
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		a, err := netip.ParseAddr(f[1])
		if err != nil || a.IsMulticast() {
			continue // as libc does
		}
		if a.IsUnspecified() {
			a = loopback()[0] // libc reads 0.0.0.0 as this machine
		}
		ups = append(ups, Upstream{transport: "udp", addr: netip.AddrPortFrom(a, portDNS)})
	}
	if len(ups) == 0 {
		return nil, errors.New("resolv.conf names no nameserver: give one with --dns-upstream ADDRESS")
	}
	return ups, nil
}
