package fetch

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Target is a URL as curl reads one: it is stricter than a browser and keeps the
// bytes of path and query as they are.
type Target struct {
	Scheme     string // http or https, or what is not supported
	Host       string // without brackets, lower case, punycode
	Port       int
	Path       string // begins with "/"
	Query      string // with its "?", or ""
	fragment   string // with its "#", or ""
	User, Pass string
	HasUser    bool
}

func badURL() *Failure { return Fail(ExitURL, "URL using bad/illegal format or missing URL") }

// ParseURL reads s, which has no scheme perhaps: then it is def.
func ParseURL(s, def string, asIs bool) (*Target, *Failure) {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return nil, badURL()
		}
	}
	t := &Target{Scheme: def}
	rest := s
	if scheme, after, ok := strings.Cut(s, ":/"); ok && isScheme(scheme) {
		t.Scheme, rest = strings.ToLower(scheme), strings.TrimLeft(after, "/")
		if len(after)-len(rest) > 2 {
			return nil, badURL()
		}
	}
	if t.Scheme != "http" && t.Scheme != "https" {
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
	if s == "" || len(s) > 40 || !IsAlpha(s[0]) {
		return false
	}
	for i := range len(s) {
		if !IsAlpha(s[i]) && (s[i] < '0' || s[i] > '9') && !strings.ContainsRune("+-.", rune(s[i])) {
			return false
		}
	}
	return true
}

// IsAlpha reports whether b is an ASCII letter.
func IsAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func (t *Target) authority(a string) *Failure {
	if at := strings.LastIndexByte(a, '@'); at >= 0 {
		user, pass, _ := strings.Cut(a[:at], ":")
		if strings.Contains(a[:at], "@") {
			return badURL()
		}
		t.User, t.Pass, t.HasUser, a = Unescape(user), Unescape(pass), true, a[at+1:]
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
	t.Port = 80
	if t.Scheme == "https" {
		t.Port = 443
	}
	if port != "" && port[0] != ':' {
		return badURL()
	}
	if len(port) > 1 {
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 {
			return badURL()
		}
		t.Port = int(n)
	}
	return t.setHost(host)
}

func (t *Target) setHost(host string) *Failure {
	host = strings.ToLower(Unescape(host))
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
		} else if !IsAlpha(c) && (c < '0' || c > '9') && !strings.ContainsRune("-._:", rune(c)) {
			return badURL()
		}
	}
	t.Host = host
	return nil
}

func (t *Target) setPath(s string, asIs bool) {
	s = EscapeHigh(s)
	if i := strings.IndexByte(s, '#'); i >= 0 {
		s, t.fragment = s[:i], s[i:]
	}
	if i := strings.IndexByte(s, '?'); i >= 0 {
		s, t.Query = s[:i], s[i:]
	}
	if s == "" {
		s = "/"
	}
	t.Path = s
	if !asIs {
		t.Path = removeDots(s)
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

// EscapeHigh writes bytes that no request line may hold as %xx.
func EscapeHigh(s string) string {
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

// Unescape is s with its %XX read; s itself if one of them is wrong.
func Unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// Follow is where a Location of t leads.
func (t *Target) Follow(location string, asIs bool) (*Target, *Failure) {
	location = strings.TrimSpace(location)
	scheme, _, ok := strings.Cut(location, ":")
	switch {
	case ok && isScheme(scheme) && (strings.HasPrefix(location[len(scheme):], "://") || scheme != "http" && scheme != "https"):
		return ParseURL(EscapeHigh(strings.TrimSuffix(location, " ")), "http", asIs)
	case strings.HasPrefix(location, "//"):
		return ParseURL(t.Scheme+":"+EscapeHigh(location), t.Scheme, asIs)
	}
	n := *t
	n.Query, n.fragment = "", ""
	switch {
	case strings.HasPrefix(location, "/"):
		n.setPath(location, asIs)
	case strings.HasPrefix(location, "?"):
		n.setPath(t.Path+location, true)
	case location == "" || location[0] == '#':
		n.setPath(t.Path+t.Query+location, true)
	default:
		n.setPath(t.Path[:strings.LastIndexByte(t.Path, '/')+1]+location, asIs)
	}
	return &n, nil
}

// AuthorityText is the value of Host: the port only where it is not the scheme's.
func (t *Target) AuthorityText() string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Scheme == "http" && t.Port == 80 || t.Scheme == "https" && t.Port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(t.Port)
}

func (t *Target) hostPort() string { return net.JoinHostPort(t.Host, strconv.Itoa(t.Port)) }

// String is t without a user name.
func (t *Target) String() string {
	if t.Host == "" {
		return t.Scheme + "://"
	}
	return t.Scheme + "://" + t.AuthorityText() + t.Path + t.Query
}

// SameOrigin says whether what was given for t may be told to u.
func (t *Target) SameOrigin(u *Target) bool {
	return t.Scheme == u.Scheme && t.Host == u.Host && t.Port == u.Port
}

// IsToken reports whether s is a token of RFC 9110, of at most 64 bytes.
func IsToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !IsAlpha(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}
