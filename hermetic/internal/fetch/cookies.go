package fetch

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Bounds of a jar.
const (
	cookiesMax    = 3000
	cookieMax     = 8 << 10 // bytes of one Set-Cookie
	cookieSendMax = 8 << 10 // bytes of one Cookie field
	jarMax        = 4 << 20 // bytes of a cookie file
)

// cookie is one line of a Netscape cookie file.
type cookie struct {
	domain   string // without a leading dot
	tail     bool   // subdomains too
	path     string
	secure   bool
	httpOnly bool
	Expires  int64 // seconds since 1970; 0: with the session
	name     string
	value    string
}

// Jar is curl's cookie engine.
type Jar struct {
	All []cookie // in the order that they came
	Now func() time.Time
}

func (j *Jar) put(c cookie) {
	j.All = slices.DeleteFunc(j.All, func(o cookie) bool {
		return o.name == c.name && o.path == c.path && o.tail == c.tail && o.domain == c.domain
	})
	if c.Expires != 0 && c.Expires <= j.Now().Unix() {
		return
	}
	if len(j.All) < cookiesMax {
		j.All = append(j.All, c)
	}
}

// Take keeps what an answer of t sets.
//
// Threat: one origin sets a cookie that another one is sent, or a whole public
// suffix -> a Domain that the host is not in, and one that is a public suffix,
// are dropped, and only https sets Secure ones -> neighbours below one
// registrable domain share, as in every browser.
func (j *Jar) Take(t *Target, h http.Header) {
	for _, line := range h.Values("Set-Cookie") {
		if len(line) > cookieMax {
			continue
		}
		if c, ok := j.parse(t, line); ok {
			j.put(c)
		}
	}
}

func (j *Jar) parse(t *Target, line string) (c cookie, ok bool) {
	parts := strings.Split(line, ";")
	name, value, found := strings.Cut(parts[0], "=")
	c = cookie{domain: t.Host, path: defaultPath(t.Path), name: strings.TrimSpace(name), value: strings.TrimSpace(value)}
	if !found || c.name == "" || strings.ContainsFunc(parts[0], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return c, false
	}
	maxAge := false
	for _, p := range parts[1:] {
		key, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		v = strings.Trim(strings.TrimSpace(v), `"`)
		switch strings.ToLower(key) {
		case "domain":
			if ok := c.setDomain(t.Host, v); !ok {
				return c, false
			}
		case "path":
			if strings.HasPrefix(v, "/") {
				c.path = v
			}
		case "secure":
			c.secure = true
		case "httponly":
			c.httpOnly = true
		case "max-age":
			if n, err := strconv.ParseInt(v, 10, 40); err == nil {
				maxAge, c.Expires = true, max(1, j.Now().Unix()+n)
				if n <= 0 {
					c.Expires = 1
				}
			}
		case "expires":
			if at, err := http.ParseTime(strings.ReplaceAll(v, "-", " ")); err == nil && !maxAge {
				c.Expires = max(1, at.Unix())
			} else if at, err := time.Parse("Mon, 02 Jan 2006 15:04:05 MST", strings.ReplaceAll(v, "-", " ")); err == nil && !maxAge {
				c.Expires = max(1, at.Unix())
			}
		}
	}
	return c, !c.secure || t.Scheme == "https" || isLoopback(t.Host)
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

func (c *cookie) setDomain(host, domain string) bool {
	domain = strings.ToLower(strings.TrimPrefix(domain, "."))
	if domain == "" {
		return true
	}
	if host == domain && isAddress(host) {
		return true
	}
	if suffix, _ := publicsuffix.PublicSuffix(domain); suffix == domain && host != domain {
		return false
	}
	if !tailMatches(host, domain) {
		return false
	}
	c.domain, c.tail = domain, true
	return true
}

func isAddress(host string) bool {
	return strings.Contains(host, ":") || strings.Trim(host, "0123456789.") == ""
}

func tailMatches(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain) && !isAddress(host)
}

func defaultPath(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

// Header is the Cookie field for t; "" is none. more goes in front of all.
func (j *Jar) Header(t *Target, more string) string {
	var fit []cookie
	now := j.Now().Unix()
	for _, c := range slices.Backward(j.All) { // the newest first, as curl has it
		domain := c.domain == t.Host || c.tail && tailMatches(t.Host, c.domain)
		under := t.Path == c.path || strings.HasPrefix(t.Path, c.path) && (strings.HasSuffix(c.path, "/") || strings.HasPrefix(t.Path[len(c.path):], "/"))
		secure := !c.secure || t.Scheme == "https" || isLoopback(t.Host)
		if domain && under && secure && (c.Expires == 0 || c.Expires > now) {
			fit = append(fit, c)
		}
	}
	slices.SortStableFunc(fit, func(a, b cookie) int {
		if n := len(b.path) - len(a.path); n != 0 {
			return n
		}
		if n := len(b.domain) - len(a.domain); n != 0 {
			return n
		}
		return len(b.name) - len(a.name)
	})
	var b strings.Builder
	for _, c := range fit {
		if b.Len()+len(c.name)+len(c.value) > cookieSendMax {
			break
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(c.name + "=" + c.value)
	}
	if more != "" {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(more)
	}
	return b.String()
}

// Load reads a Netscape cookie file, or a dump of header fields. junk leaves
// session cookies out.
func (j *Jar) Load(r io.Reader, junk bool) {
	lines := bufio.NewScanner(io.LimitReader(r, jarMax))
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r\n")
		httpOnly := strings.HasPrefix(line, "#HttpOnly_")
		line = strings.TrimPrefix(line, "#HttpOnly_")
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) == 6 {
			f = append(f, "")
		}
		if len(f) != 7 {
			continue
		}
		expires, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil || junk && expires == 0 {
			continue
		}
		j.put(cookie{
			domain: strings.ToLower(strings.TrimPrefix(f[0], ".")), tail: f[1] == "TRUE", path: f[2], secure: f[3] == "TRUE",
			httpOnly: httpOnly, Expires: expires, name: f[5], value: f[6],
		})
	}
}

// Save writes a Netscape cookie file, the newest first as curl does.
func (j *Jar) Save(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n" +
		"# This file was generated by libcurl! Edit at your own risk.\n\n")
	for _, c := range slices.Backward(j.All) {
		if c.Expires != 0 && c.Expires <= j.Now().Unix() {
			continue
		}
		domain, prefix := c.domain, ""
		if c.tail {
			domain = "." + domain
		}
		if c.httpOnly {
			prefix = "#HttpOnly_"
		}
		fmt.Fprintf(&b, "%s%s\t%s\t%s\t%s\t%d\t%s\t%s\n", prefix, domain, upper(c.tail), c.path, upper(c.secure), c.Expires, c.name, c.value)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func upper(b bool) string {
	if b {
		return "TRUE"
	}
	return "FALSE"
}
