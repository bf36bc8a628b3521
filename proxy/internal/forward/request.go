package forward

import (
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"

	"egressd/proxy/internal/http1"
)

// outgoing is the request as the origin gets it: the judged authority, the path
// and query as sent, the client's fields without those that are between the
// client and the gate, nothing added.
func (x *exchange) outgoing() *http.Request {
	out := x.Request.WithContext(httptrace.WithClientTrace(x.ctx, x.trace()))
	out.URL = x.outgoingURL()
	x.dress(out)
	return out
}

// dress makes the copy out of the client's request what the origin gets.
func (x *exchange) dress(out *http.Request) {
	out.Host = x.HostField
	out.Close = false
	stripHopByHop(out.Header, x.Upgrade)
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // else net/http adds its own
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &countedBody{ReadCloser: out.Body, x: x}
	}
	x.Gate.Outgoing(out)
}

func (x *exchange) outgoingURL() *url.URL {
	u := &url.URL{Scheme: "http", Host: x.Host, RawQuery: strings.TrimPrefix(x.Query, "?")}
	if x.TLS {
		u.Scheme = "https"
	}
	u.ForceQuery = x.Query == "?"
	if x.Absolute {
		u.Opaque = "//" + x.HostField + x.Path // RequestURI puts the scheme before it
		return u
	}
	if strings.HasPrefix(x.Path, "//") {
		// As Opaque it would be taken for an authority. EscapedPath keeps every
		// valid spelling as it is.
		u.RawPath = x.Path
		if p, err := url.PathUnescape(x.Path); err == nil {
			u.Path = p
		} else {
			u.Path, u.RawPath = x.Path, ""
		}
		return u
	}
	u.Opaque = x.Path // untouched, whatever url.Parse thinks of it
	return u
}

// hopByHop are the fields that concern one connection alone (RFC 9110 section
// 7.6.1), with those that are not in Connection by custom.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Trailer", "Upgrade", "Http2-Settings",
}

// stripHopByHop removes the fields between two neighbours. TE: trailers and,
// where upgrading, one Upgrade survive. An upgrade to h2c or TLS would take the
// connection out of sight, so it is not offered; the origin answers in HTTP/1.1.
func stripHopByHop(h http.Header, upgrading bool) {
	protocol := strings.Join(h.Values("Upgrade"), ",")
	trailers := http1.IsUpgradeToken(strings.Join(h.Values("Te"), ","), "trailers")
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	if trailers {
		h.Set("Te", "trailers")
	}
	if upgrading && carriesUpgrade(protocol) {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", protocol)
	}
}

func carriesUpgrade(protocol string) bool {
	return protocol != "" && !http1.IsUpgradeToken(protocol, "h2c") &&
		!http1.IsUpgradeToken(protocol, "h2") && !http1.IsUpgradeToken(protocol, "HTTP") && !http1.IsUpgradeToken(protocol, "TLS")
}
