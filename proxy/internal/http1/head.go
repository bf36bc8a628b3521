package http1

import (
	"bytes"
	"net/textproto"
	"net/url"
	"strings"
)

// Form is the form of a request target (RFC 9112 section 3.2).
type Form uint8

const (
	FormOrigin    Form = iota + 1 // /path?query
	FormAbsolute                  // http://host/path
	FormAuthority                 // host:port, with CONNECT alone
	FormAsterisk                  // *, with OPTIONS alone
)

// Request holds the facts of one request head, as sent.
type Request struct {
	Method string
	Target string
	Form   Form
	Minor  int // 0 or 1: HTTP/1.Minor

	// Scheme and Authority are those of an absolute-form target (the scheme in
	// lower case); Authority is also the target of a CONNECT.
	Scheme, Authority string
	// Path is the target's path as sent, without the query: "/" if an
	// absolute-form target has none, "*" in asterisk form, "" for CONNECT.
	Path string
	// Query is what follows the path, with its question mark; "" when there is none.
	Query string

	Fields

	HeadBytes int    // length of the head, the empty line included
	Head      []byte // the head itself; kept for CONNECT alone

	// Err says why this is not a request; the other fields then hold what was
	// read before it was found out.
	Err *Error

	body body
}

// Fields are the header fields, those that a judge reads by themselves.
type Fields struct {
	// Header has all of them under canonical names, but Host, Transfer-Encoding and,
	// with that, Trailer.
	Header textproto.MIMEHeader
	// Trailer has the announced names, with nil values until the end of the
	// content, and then what came. Nil: there can be none.
	Trailer textproto.MIMEHeader
	// Length is that of the content; -1: it is chunked.
	Length int64

	Host    string // the Host field's value
	HasHost bool

	ProxyAuth    string // the Proxy-Authorization field's value
	HasProxyAuth bool

	Upgrade   bool // Connection lists upgrade and there is an Upgrade field
	Close     bool // Connection lists close
	KeepAlive bool // Connection lists keep-alive
	Expect    bool // the client waits for 100 before it sends content
}

// Error is a message that cannot be read in one way only.
type Error struct {
	// Status is the HTTP status that fits a request best: 400, 408, 417, 431 or
	// 503. Of a response it says nothing.
	Status int
	Detail string // one line, no bytes of the peer
}

func (e *Error) Error() string { return e.Detail }

func malformed(detail string) *Error { return &Error{Status: 400, Detail: detail} }

// ParseHead reads one request head, from the request line to the empty line,
// both included. It accepts less than RFC 9112 lets a server accept: whatever
// two parsers have been seen to read in two ways is refused (RFC 9112 section
// 11.2). Err is set on the Request when the head is refused.
func ParseHead(head []byte) Request {
	r := Request{HeadBytes: len(head)}
	r.Err = r.parse(head)
	if r.Err == nil && r.Form == FormAuthority {
		r.Head = bytes.Clone(head)
	}
	return r
}

func (r *Request) parse(head []byte) *Error {
	line, rest, err := cutLine(head)
	if err != nil {
		return err
	}
	if err := r.parseRequestLine(line); err != nil {
		return err
	}
	var f fields
	if r.Header, err = parseFields(head, rest, f.add); err != nil {
		return err
	}
	return r.frame(&f)
}

// parseFields reads the field lines in rest, which is the end of head, up to the
// empty line. add sees each of them.
func parseFields(head, rest []byte, add func(name, value []byte) *Error) (textproto.MIMEHeader, *Error) {
	text := string(head) // names and values are parts of it: one allocation for all
	n := max(0, bytes.Count(rest, []byte("\n"))-1)
	h := make(textproto.MIMEHeader, n)
	values := make([]string, n)
	for {
		line, after, err := cutLine(rest)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if len(after) != 0 {
				return nil, malformed("bytes after the empty line that ends the head")
			}
			return h, nil
		}
		name, value, err := splitField(line)
		if err != nil {
			return nil, err
		}
		if err := add(name, value); err != nil {
			return nil, err
		}
		at := len(text) - len(rest)
		key := textproto.CanonicalMIMEHeaderKey(text[at : at+len(name)])
		v := strings.Trim(text[at+len(name)+1:at+len(line)], " \t")
		if old := h[key]; old == nil {
			values[0] = v
			h[key], values = values[:1:1], values[1:]
		} else {
			h[key] = append(old, v)
		}
		rest = after
	}
}

// cutLine takes one line that ends in CR LF from b.
func cutLine(b []byte) (line, rest []byte, err *Error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, nil, malformed("the request head does not end")
	}
	if i == 0 || b[i-1] != '\r' {
		return nil, nil, malformed("a line of the request head ends in LF without CR")
	}
	line = b[:i-1]
	if bytes.IndexByte(line, '\r') >= 0 {
		return nil, nil, malformed("a CR in the request head is not followed by LF")
	}
	return line, b[i+1:], nil
}

func (r *Request) parseRequestLine(line []byte) *Error {
	if bytes.IndexByte(line, ' ') < 0 || bytes.Count(line, []byte(" ")) != 2 {
		return malformed("the request line is not: method, one space, target, one space, version")
	}
	method, rest, _ := bytes.Cut(line, []byte(" "))
	target, version, _ := bytes.Cut(rest, []byte(" "))
	if len(method) > maxMethod || !isToken(method) {
		return malformed("the method is not a token")
	}
	r.Method = string(method)
	switch string(version) {
	case "HTTP/1.1":
		r.Minor = 1
	case "HTTP/1.0":
		r.Minor = 0
	case "HTTP/2.0", "HTTP/2", "HTTP/3":
		return malformed("HTTP/2 without TLS (prior knowledge) is not spoken here; use HTTP/1.1")
	default:
		return malformed("the version is not HTTP/1.1 or HTTP/1.0")
	}
	for _, c := range target {
		// Non-ASCII bytes, controls and DEL have no place in a URI (RFC 3986);
		// a backslash is a slash to some origins and a letter to others.
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return malformed("the request target holds a byte that must be percent-encoded")
		}
		if c == '#' {
			return malformed("the request target holds a fragment")
		}
	}
	if err := r.parseTarget(string(target)); err != nil {
		return err
	}
	if r.Form != FormAuthority && r.Form != FormAsterisk && !r.plain() {
		// A % without two hex digits and the like: origins differ about them.
		if _, err := url.ParseRequestURI(r.Target); err != nil {
			return malformed("the request target is not a valid URI (a % without two hex digits, or a bad host)")
		}
	}
	return nil
}

// plain reports whether the target is one that net/url takes without a look.
func (r *Request) plain() bool {
	if strings.IndexByte(r.Target, '%') >= 0 {
		return false
	}
	for i := range len(r.Authority) {
		switch c := r.Authority[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

func (r *Request) parseTarget(target string) *Error {
	r.Target = target
	switch {
	case r.Method == "CONNECT":
		r.Form, r.Authority = FormAuthority, target
		if target == "" || strings.ContainsAny(target, "/?@") {
			return malformed("a CONNECT target is host:port")
		}
	case target == "*":
		if r.Method != "OPTIONS" {
			return malformed("the target * goes with OPTIONS alone")
		}
		r.Form, r.Path = FormAsterisk, "*"
	case strings.HasPrefix(target, "/"):
		r.Form = FormOrigin
		r.splitPath(target)
	default:
		return r.parseAbsolute(target)
	}
	return nil
}

func (r *Request) parseAbsolute(target string) *Error {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return malformed("the request target is neither a path nor an absolute http:// URL")
	}
	r.Form, r.Scheme = FormAbsolute, strings.ToLower(scheme)
	if r.Scheme != "http" && r.Scheme != "https" {
		return malformed("the scheme of the request target is not http")
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	r.Authority = rest[:end]
	if r.Authority == "" {
		return malformed("the request target names no host")
	}
	if strings.Contains(r.Authority, "@") {
		return malformed("the request target holds a user name or password before the host")
	}
	r.splitPath(rest[end:])
	if r.Path == "" {
		r.Path = "/"
		if r.Method == "OPTIONS" && r.Query == "" {
			r.Path = "*" // RFC 9112 section 3.2.4
		}
	}
	return nil
}

func (r *Request) splitPath(s string) {
	i := strings.IndexByte(s, '?')
	if i < 0 {
		r.Path = s
		return
	}
	r.Path, r.Query = s[:i], s[i:]
}

// splitField reads one field line (RFC 9112 section 5). The value is without
// the white space around it.
func splitField(line []byte) (name, value []byte, err *Error) {
	if line[0] == ' ' || line[0] == '\t' {
		return nil, nil, malformed("a field line is folded (it starts with white space)")
	}
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return nil, nil, malformed("a field line has no colon")
	}
	name = line[:i]
	if !isToken(name) {
		return nil, nil, malformed("a field name is not a token (a space before the colon, perhaps)")
	}
	value = line[i+1:]
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, malformed("a field value holds a control byte")
		}
	}
	return name, bytes.Trim(value, " \t"), nil
}

// isToken reports whether b is a token (RFC 9110 section 5.6.2).
func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenByte(c) {
			return false
		}
	}
	return len(b) > 0
}

func tokenByte(c byte) bool {
	const (
		digits  = (1<<10 - 1) << '0'
		letters = (1<<26-1)<<('a'-'A') | 1<<26 - 1 // from A
		low     = digits | 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.'
		high    = letters | 1<<('^'-'A') | 1<<('_'-'A') | 1<<('`'-'A') | 1<<('|'-'A') | 1<<('~'-'A')
	)
	if c < 'A' {
		return c < 64 && uint64(low)>>c&1 == 1
	}
	return c < 0x7f && uint64(high)>>(c-'A')&1 == 1
}
