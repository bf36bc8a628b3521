package web

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// target is a URL as curl reads one: it is stricter than a browser and keeps the
// bytes of path and query as they are.
type target struct {
	scheme     string // http or https, or what is not supported
	host       string // without brackets, lower case, punycode
	port       int
	path       string // begins with "/"
	query      string // with its "?", or ""
	fragment   string // with its "#", or ""
	user, pass string
	hasUser    bool
}

func badURL() *failure { return fail(exitURL, "URL using bad/illegal format or missing URL") }

// parseURL reads s, which has no scheme perhaps: then it is def.
func parseURL(s, def string, asIs bool) (*target, *failure) {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return nil, badURL()
		}
	}
	t := &target{scheme: def}
	rest := s
	if scheme, after, ok := strings.Cut(s, ":/"); ok && isScheme(scheme) {
		t.scheme, rest = strings.ToLower(scheme), strings.TrimLeft(after, "/")
		if len(after)-len(rest) > 2 {
			return nil, badURL()
		}
	}
	if t.scheme != "http" && t.scheme != "https" {
		return t, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if f := t.authority(rest[:end]); f != nil {
		return nil, f
	}
	t.setPath(rest[end:], asIs)
	return t, nil
}

func isScheme(s string) bool {
	if s == "" || len(s) > 40 || !isAlpha(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isAlpha(s[i]) && (s[i] < '0' || s[i] > '9') && !strings.ContainsRune("+-.", rune(s[i])) {
			return false
		}
	}
	return true
}

func isAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func (t *target) authority(a string) *failure {
	if at := strings.LastIndexByte(a, '@'); at >= 0 {
		user, pass, _ := strings.Cut(a[:at], ":")
		if strings.Contains(a[:at], "@") {
			return badURL()
		}
		t.user, t.pass, t.hasUser, a = unescape(user), unescape(pass), true, a[at+1:]
	}
	host, port := a, ""
	if strings.HasPrefix(a, "[") {
		end := strings.IndexByte(a, ']')
		if end < 0 || net.ParseIP(a[1:end]) == nil {
			return badURL()
		}
		host, port = a[1:end], a[end+1:]
	} else if colon := strings.IndexByte(a, ':'); colon >= 0 {
		host, port = a[:colon], a[colon:]
	}
	t.port = 80
	if t.scheme == "https" {
		t.port = 443
	}
	if port != "" && port[0] != ':' {
		return badURL()
	}
	if len(port) > 1 {
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 {
			return badURL()
		}
		t.port = int(n)
	}
	return t.setHost(host)
}

func (t *target) setHost(host string) *failure {
	host = strings.ToLower(unescape(host))
	if host == "" || len(host) > 255 {
		return badURL()
	}
	for i := range len(host) {
		if c := host[i]; c >= 0x80 {
			ascii, err := idna.Lookup.ToASCII(host)
			if err != nil {
				return badURL()
			}
			host = ascii
			break
		} else if !isAlpha(c) && (c < '0' || c > '9') && !strings.ContainsRune("-._:", rune(c)) {
			return badURL()
		}
	}
	t.host = host
	return nil
}

func (t *target) setPath(s string, asIs bool) {
	s = escapeHigh(s)
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, t.fragment = s[:i], s[i:]
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, t.query = s[:i], s[i:]
	}
	if s == "" {
		s = "/"
	}
	t.path = s
	if !asIs {
		t.path = removeDots(s)
	}
}

// removeDots is RFC 3986 section 5.2.4.
func removeDots(p string) string {
	var out []string
	parts := strings.Split(p, "/")[1:]
	for i, part := range parts {
		last := i == len(parts)-1
		switch part {
		case ".", "..":
			if part == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, part)
		}
	}
	return "/" + strings.Join(out, "/")
}

// escapeHigh writes bytes that no request line may hold as %xx.
func escapeHigh(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '\\' { // the gate takes no backslash
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// follow is where a Location of t leads.
func (t *target) follow(location string, asIs bool) (*target, *failure) {
	location = strings.TrimSpace(location)
	scheme, _, ok := strings.Cut(location, ":")
	switch {
	case ok && isScheme(scheme) && (strings.HasPrefix(location[len(scheme):], "://") || scheme != "http" && scheme != "https"):
		return parseURL(escapeHigh(strings.TrimSuffix(location, " ")), "http", asIs)
	case strings.HasPrefix(location, "//"):
		return parseURL(t.scheme+":"+escapeHigh(location), t.scheme, asIs)
	}
	n := *t
	n.query, n.fragment = "", ""
	switch {
	case strings.HasPrefix(location, "/"):
		n.setPath(location, asIs)
	case strings.HasPrefix(location, "?"):
		n.setPath(t.path+location, true)
	case location == "" || location[0] == '#':
		n.setPath(t.path+t.query+location, true)
	default:
		n.setPath(t.path[:strings.LastIndexByte(t.path, '/')+1]+location, asIs)
	}
	return &n, nil
}

// authorityText is the value of Host: the port only where it is not the scheme's.
func (t *target) authorityText() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.scheme == "http" && t.port == 80 || t.scheme == "https" && t.port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(t.port)
}

func (t *target) hostPort() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }

// String is t without a user name.
func (t *target) String() string {
	if t.host == "" {
		return t.scheme + "://"
	}
	return t.scheme + "://" + t.authorityText() + t.path + t.query
}

// sameOrigin says whether what was given for t may be told to u.
func (t *target) sameOrigin(u *target) bool {
	return t.scheme == u.scheme && t.host == u.host && t.port == u.port
}
