// Package upstream reads what a policy or a command line says about an upstream
// proxy: the proxy through which a company wants all traffic to leave. It is pure.
//
//	proxy, err := upstream.Section{URL: "http://proxy.example.com:3128"}.Compile()
//	if !proxy.Bypasses("git.corp.example", netip.Addr{}, 443) {
//		// the flow leaves through proxy
//	}
package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"egressd/policy/internal/names"
)

// None, written instead of a URL, means no upstream proxy, even if the environment names
// one.
const None = "none"

// The words of Section.Resolve: who looks names up.
const (
	Local   = "local" // the gate, which judges the addresses and asks the proxy for one of them
	AtProxy = "proxy" // the proxy, which is asked for the name
)

// Section is the upstream_proxy section as it was written. The zero Section says
// nothing.
type Section struct {
	URL         string   // http[s]://[USER@]HOST[:PORT], or None
	Resolve     string   // Local or AtProxy; "" is Local
	Credentials string   // a file with USER:PASSWORD; "" sends none
	CA          string   // a file of authorities that may vouch for an https:// proxy, besides the system's
	Bypass      []string // what is reached directly: see ParseBypass
	At          string   // where it stands
}

// IsZero reports whether s says nothing.
func (s Section) IsZero() bool { return s.URL == "" && s.alone() }

// alone reports whether s says nothing but a URL.
func (s Section) alone() bool {
	return s.Resolve == "" && s.Credentials == "" && s.CA == "" && len(s.Bypass) == 0
}

// Proxy is an upstream proxy. Immutable.
type Proxy struct {
	None bool // there is none: flows leave directly. The other fields are zero
	Address
	AtProxy     bool   // the proxy looks names up; false: the gate does
	Credentials string // a file; "": none
	CA          string // a file; "": the system's authorities alone

	bypass  Bypass
	written []string // the bypass as it was written
}

// Address is the address of a proxy and the user name for it.
type Address struct {
	TLS  bool       // https://: the connection to the proxy is encrypted
	Name string     // of the host, as package policy spells it; "" if it is an address
	Addr netip.Addr // of the host; zero if it has a name
	Port uint16
	User string // "": the URL names nobody
}

// String is host:port.
func (a Address) String() string {
	host := a.Name
	if host == "" {
		host = a.Addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(a.Port)))
}

var (
	errNoURL    = errors.New("nothing names the upstream proxy that this is about: add its url, http://HOST:PORT (--upstream-proxy)")
	errPassword = errors.New("a password in the URL of the upstream proxy can be read by others: leave it out, put USER:PASSWORD into a file, and name that as credentials_file (--upstream-credentials)")
	errResolve  = errors.New("upstream resolve is local (the gate looks names up and judges the addresses) or proxy (the upstream proxy looks them up)")
)

// Compile reads s, which is not zero.
func (s Section) Compile() (*Proxy, error) {
	switch {
	case s.URL == "", s.URL == None && !s.alone():
		return nil, errNoURL
	case s.URL == None:
		return &Proxy{None: true}, nil
	case s.Resolve != "" && s.Resolve != Local && s.Resolve != AtProxy:
		return nil, errResolve
	}
	p := &Proxy{AtProxy: s.Resolve == AtProxy, Credentials: s.Credentials, CA: s.CA, written: slices.Sorted(slices.Values(s.Bypass))}
	var password string
	var err error
	if p.Address, password, err = Parse(s.URL); err != nil {
		return nil, err
	}
	if password != "" {
		return nil, errPassword
	}
	if p.bypass, err = ParseBypass(s.Bypass); err != nil {
		return nil, err
	}
	return p, nil
}

// Bypasses reports whether a flow to this destination, a name or an address, goes
// directly. It does where p is nil.
func (p *Proxy) Bypasses(name string, addr netip.Addr, port uint16) bool {
	return p == nil || p.bypass.Covers(name, addr, port)
}

// String is host:port, "" for a nil Proxy.
func (p *Proxy) String() string {
	if p == nil {
		return ""
	}
	return p.Address.String()
}

// Lines spell what decides where flows go, each a fact. Which files hold a login or
// authorities does not. Nil for a nil Proxy.
func (p *Proxy) Lines() []string {
	switch {
	case p == nil:
		return nil
	case p.None:
		return []string{"upstream_proxy: " + None}
	}
	resolve := Local
	if p.AtProxy {
		resolve = AtProxy
	}
	out := []string{fmt.Sprintf("upstream_proxy: %s tls=%t resolve=%s", p, p.TLS, resolve)}
	for _, text := range p.written {
		out = append(out, "upstream_proxy.bypass: "+text)
	}
	return out
}

// Parse reads the URL of an upstream proxy, and the password in it; "" if there is
// none. An error repeats nothing that may be a password.
func Parse(text string) (a Address, password string, err error) {
	const fix = ": write http://HOST:PORT or https://HOST:PORT"
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return Address{}, "", errors.New("the upstream proxy has no scheme" + fix)
	}
	a.Port = 80
	switch strings.ToLower(scheme) {
	case "http":
	case "https":
		a.TLS, a.Port = true, 443
	default:
		return Address{}, "", fmt.Errorf("an upstream proxy is http:// or https://, not %.20q"+fix, scheme)
	}
	u, err := url.Parse("http://" + rest)
	if err != nil {
		return Address{}, "", errors.New("the URL of the upstream proxy cannot be read (in a password, percent-encode what is no letter or digit)" + fix)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Hostname() == "" {
		return Address{}, "", errors.New("the URL of an upstream proxy is a host and a port, and nothing behind them" + fix)
	}
	if a.Name, a.Addr, err = names.ParseHost(u.Hostname()); err != nil {
		return Address{}, "", fmt.Errorf("upstream proxy: %w", err)
	}
	if u.User != nil {
		a.User = u.User.Username()
		password, _ = u.User.Password()
	}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return Address{}, "", fmt.Errorf("the port of the upstream proxy is %q: write 1 to 65535", text)
		}
		a.Port = uint16(n)
	}
	return a, password, nil
}
