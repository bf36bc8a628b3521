package proxy

import (
	"net/netip"
	"strings"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/http1"
)

// scope fixes what the HTTP requests on a connection may ask for.
type scope struct {
	door event.Door
	// host is the one judged host that origin-form requests on this connection
	// stand for. Zero with captured false: the explicit proxy door, which wants
	// absolute-form. Zero with captured true: captured port 80 to an address
	// that no rule names; requests are origin-form and Host is the judged name.
	host     policy.Host
	captured bool
	port     uint16 // of host, or the captured port; 0 at the explicit door
	tls      bool   // inside intercepted TLS: upstream is https
	flow     uint64 // 0: each request takes its own from Server.newFlow
	client   netip.AddrPort
	// addr is the captured address (zero elsewhere), for events only: it is
	// never dialled.
	addr netip.AddrPort
	via  string // the upstream proxy that the flow leaves through, for events; "": none
}

// explicit reports whether this is the proxy's own door, at which absolute-form
// names the host.
func (sc scope) explicit() bool { return sc.host.IsZero() && !sc.captured }

// target turns the facts of one request into the question for the policy. bad
// says, in words of ours, why there is no question to ask.
func (sc scope) target(f http1.Request) (r policy.Request, bad string) {
	r = policy.Request{Wire: policy.WireHTTP, Method: f.Method, Path: f.Path}
	if sc.tls { // whose handshake named sc.host, see sameName
		r.Wire, r.SNI = policy.WireTLS, sc.host.SNI()
	}
	if f.Form == http1.FormAuthority {
		return r, "CONNECT inside a connection that stands for one host"
	}
	if f.HasHost {
		var ok bool
		if r.HTTPHost, r.HTTPPort, ok = parseHostPort(f.Host); !ok {
			return r, "Host cannot be read as a host with an optional port"
		}
	}
	switch {
	case sc.explicit():
		return sc.explicitTarget(r, f)
	case sc.captured && sc.host.IsZero():
		r.Host, r.Port = r.HTTPHost, sc.port
		if r.Host.IsZero() {
			return r, "there is no Host, and nothing else names one"
		}
	default:
		r.Host, r.Port = sc.host, sc.port
	}
	if f.Form == http1.FormAbsolute {
		return sc.innerAbsolute(r, f)
	}
	return r, ""
}

// explicitTarget reads the absolute-form that a proxy is asked with (RFC 9112
// section 3.2.2).
func (sc scope) explicitTarget(r policy.Request, f http1.Request) (policy.Request, string) {
	if f.Form != http1.FormAbsolute {
		return r, "this is a proxy: it wants the whole URL (GET http://host/path), or CONNECT host:port for TLS; name it in HTTP_PROXY and HTTPS_PROXY"
	}
	if f.Scheme != "http" {
		return r, "https:// goes through CONNECT host:443, not through a request for an https:// URL"
	}
	host, port, ok := parseHostPort(f.Authority)
	if !ok {
		return r, "the host of the URL cannot be read"
	}
	if port == 0 {
		port = 80
	}
	r.Host, r.Port = host, port
	if r.HTTPHost.IsZero() { // HTTP/1.0 alone may go without Host; the URL is its one name
		r.HTTPHost, r.HTTPPort = host, port
	}
	return r, ""
}

// innerAbsolute reads absolute-form in place of origin-form: it is fine as
// long as it names the same authority that Host names.
func (sc scope) innerAbsolute(r policy.Request, f http1.Request) (policy.Request, string) {
	want := "http"
	if sc.tls {
		want = "https"
	}
	if f.Scheme != want {
		return r, "the scheme of the URL is not that of the connection"
	}
	host, port, ok := parseHostPort(f.Authority)
	if !ok {
		return r, "the host of the URL cannot be read"
	}
	if host != r.Host || port != 0 && port != r.Port {
		r.HTTPHost, r.HTTPPort = host, port // for the policy to refuse
	}
	if r.HTTPHost.IsZero() {
		r.HTTPHost, r.HTTPPort = host, port
	}
	return r, ""
}

// parseHostPort reads uri-host [ ":" port ]. Port 0 means that none is stated.
func parseHostPort(s string) (policy.Host, uint16, bool) {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && i > strings.LastIndexByte(s, ']') {
		h, port, err := policy.ParseAuthority(s)
		return h, port, err == nil && port != 0
	}
	if strings.HasPrefix(s, "[") != strings.HasSuffix(s, "]") {
		return policy.Host{}, 0, false
	}
	h, err := policy.ParseHost(s)
	return h, 0, err == nil && !h.IsZero()
}
