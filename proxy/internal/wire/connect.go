package wire

import (
	"bytes"
	"fmt"
	"strings"
)

// Connect is the head of a CONNECT request (RFC 9110 section 9.3.6).
type Connect struct {
	Authority string // the request-target as sent
	Host      string // the Host header as sent
	HasHost   bool
	Minor     int // HTTP/1.Minor

	ProxyAuth    string // the Proxy-Authorization header as sent
	HasProxyAuth bool
}

var (
	crlf   = []byte("\r\n")
	method = []byte("CONNECT ")
)

// HeadEnd finds the end of the request head that b starts with. Done: n is its
// length with the empty line. More: there is no empty line yet. Bad: a line
// that ends in a bare LF, a bare CR, or a NUL. from is where to start looking
// (all bytes before it have been scanned already).
func HeadEnd(b []byte, from int) (n int, st State) {
	for i := max(from-3, 0); i < len(b); i++ {
		switch b[i] {
		case 0:
			return 0, Bad
		case '\n':
			if i == 0 || b[i-1] != '\r' {
				return 0, Bad
			}
			if i >= 3 && b[i-2] == '\n' {
				return i + 1, Done
			}
		case '\r':
			if i+1 < len(b) && b[i+1] != '\n' {
				return 0, Bad
			}
		}
	}
	return 0, More
}

// IsConnect reports whether b starts with "CONNECT ". More: it may yet.
func IsConnect(b []byte) State {
	n := min(len(b), len(method))
	if !bytes.Equal(b[:n], method[:n]) {
		return Other
	}
	if n < len(method) {
		return More
	}
	return Done
}

// ParseConnect reads a whole CONNECT head, as found by [HeadEnd]. A missing
// Host is not an error: clients that leave it out of CONNECT are common, and the
// authority says all there is to say.
func ParseConnect(head []byte) (Connect, error) {
	var c Connect
	line, rest, ok := bytes.Cut(head, crlf)
	if !ok {
		return c, bad("the request line has no end")
	}
	if err := c.requestLine(line); err != nil {
		return Connect{}, err
	}
	for {
		line, rest, ok = bytes.Cut(rest, crlf)
		if !ok {
			return Connect{}, bad("the head has no end")
		}
		if len(line) == 0 {
			break
		}
		if err := c.header(line); err != nil {
			return Connect{}, err
		}
	}
	if len(rest) != 0 {
		return Connect{}, bad("bytes behind the head")
	}
	return c, nil
}

func (c *Connect) requestLine(line []byte) error {
	target, ok := bytes.CutPrefix(line, method)
	if !ok {
		return bad("not a CONNECT request")
	}
	target, version, ok := bytes.Cut(target, []byte(" "))
	if !ok {
		return bad("the request line has no HTTP version")
	}
	switch string(version) {
	case "HTTP/1.0":
		c.Minor = 0
	case "HTTP/1.1":
		c.Minor = 1
	default:
		return bad("the HTTP version is not 1.0 or 1.1")
	}
	if len(target) == 0 || !visible(target) {
		return bad("the authority holds a space or a control byte, or is empty")
	}
	c.Authority = string(target)
	return nil
}

func (c *Connect) header(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || !token(name) {
		return bad("a header line has no valid name")
	}
	for _, b := range value {
		if b < ' ' && b != '\t' || b == 0x7f {
			return bad("a header value holds a control byte")
		}
	}
	value = bytes.Trim(value, " \t")
	switch {
	case is(name, "host"):
		if c.HasHost {
			return bad("two Host headers")
		}
		c.HasHost, c.Host = true, string(value)
	case is(name, "proxy-authorization"):
		if c.HasProxyAuth {
			return bad("two Proxy-Authorization headers")
		}
		c.HasProxyAuth, c.ProxyAuth = true, string(value)
	case is(name, "transfer-encoding"):
		return bad("CONNECT has no content: Transfer-Encoding")
	case is(name, "content-length"):
		if string(value) != "0" {
			return bad("CONNECT has no content: Content-Length")
		}
	}
	return nil
}

// is compares a header name, ASCII case folded.
func is(name []byte, want string) bool {
	if len(name) != len(want) {
		return false
	}
	for i, b := range name {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != want[i] {
			return false
		}
	}
	return true
}

func visible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// token reports whether b is a token (RFC 9110 section 5.6.2).
func token(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return true
}

func bad(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }
