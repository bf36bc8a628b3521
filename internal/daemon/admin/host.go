package admin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// localSuffixes are the ends of names that the public DNS never answers: RFC
// 6761 and 6762, ICANN's .internal, and a cluster's own.
func localSuffixes() []string {
	return []string{".localhost", ".local", ".internal", ".svc", ".home.arpa", ".test"}
}

// onLoopback reports whether r came in on a loopback address; also when nobody
// knows where it came in.
func onLoopback(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || addr.IP.IsLoopback()
}

// hostAllowed reports whether a request with this Host may be answered.
func hostAllowed(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(bare); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" {
		return false
	}
	if !strings.Contains(host, ".") {
		return true // no page's own name has a single label
	}
	return slices.ContainsFunc(localSuffixes(), func(end string) bool { return strings.HasSuffix(host, end) })
}
