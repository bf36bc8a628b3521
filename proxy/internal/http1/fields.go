package http1

import (
	"bytes"
	"net/textproto"
	"strconv"
	"strings"
)

// fields gathers the fields that decide how a message is framed and where it goes.
type fields struct {
	host                 string
	hosts                int
	lengths, encodings   int
	length               int64
	chunked              bool
	connectionUpgrade    bool
	close, keepAlive     bool
	upgrade              bool
	expect               bool
	expectationSupported bool
	proxyAuth            string
	proxyAuths           int
	announced            []byte // the values of Trailer
}

func (f *fields) add(name, value []byte) *Error {
	switch {
	case is(name, "host"):
		f.hosts++
		f.host = string(value)
	case is(name, "content-length"):
		f.lengths++
		n, ok := parseLength(value)
		if !ok {
			return malformed("Content-Length is not one decimal number")
		}
		f.length = n
	case is(name, "transfer-encoding"):
		f.encodings++
		f.chunked = strings.EqualFold(string(value), "chunked")
	case is(name, "connection"):
		f.connectionUpgrade = f.connectionUpgrade || lists(value, "upgrade")
		f.close = f.close || lists(value, "close")
		f.keepAlive = f.keepAlive || lists(value, "keep-alive")
	case is(name, "upgrade"):
		f.upgrade = true
	case is(name, "expect"):
		f.expect = true
		f.expectationSupported = strings.EqualFold(string(value), "100-continue")
	case is(name, "trailer"):
		f.announced = append(append(f.announced, value...), ',')
		return checkTrailerNames(value)
	case is(name, "proxy-authorization"):
		f.proxyAuths++
		f.proxyAuth = string(value)
	}
	return nil
}

// is reports whether a field has this name, in any case.
func is(name []byte, want string) bool {
	return len(name) == len(want) && strings.EqualFold(string(name), want)
}

// frame checks the fields against each other and works out the framing of the
// body (RFC 9112 section 6.3).
func (r *Request) frame(f *fields) *Error {
	r.Host, r.HasHost = f.host, f.hosts > 0
	r.ProxyAuth, r.HasProxyAuth = f.proxyAuth, f.proxyAuths > 0
	switch {
	case f.proxyAuths > 1:
		return malformed("there is more than one Proxy-Authorization")
	case f.hosts > 1:
		return malformed("there is more than one Host")
	case f.hosts == 0 && r.Minor == 1 && r.Method != "CONNECT": // there it is left out by many, as the CONNECT door knows
		return malformed("there is no Host")
	case r.HasHost && !plausibleHost(f.host):
		return malformed("Host is not a host with an optional port")
	case f.lengths > 1:
		return malformed("there is more than one Content-Length")
	case f.encodings > 1:
		return malformed("there is more than one Transfer-Encoding")
	case f.encodings == 1 && !f.chunked:
		return malformed("Transfer-Encoding is not exactly: chunked")
	case f.encodings == 1 && f.lengths == 1:
		return malformed("there are both Content-Length and Transfer-Encoding")
	case f.encodings == 1 && r.Minor == 0:
		return malformed("Transfer-Encoding in HTTP/1.0")
	case r.Method == "CONNECT" && (f.length > 0 || f.encodings > 0):
		return malformed("a CONNECT has no body")
	case f.expect && !f.expectationSupported:
		return &Error{Status: 417, Detail: "Expect is not 100-continue"}
	}
	r.Upgrade = f.upgrade && f.connectionUpgrade && r.Minor == 1
	r.Close, r.KeepAlive, r.Expect = f.close, f.keepAlive, f.expect && r.Minor == 1
	r.Length, r.body = f.length, body{left: f.length}
	delete(r.Header, "Host")
	switch {
	case f.chunked:
		r.Length, r.body = -1, body{phase: chunkSize}
		r.announce(f.announced)
	case f.length > 0:
		r.body.phase = fixedData
	}
	return nil
}

// announce reads the values of Trailer, which have been checked.
func (r *Request) announce(list []byte) {
	delete(r.Header, "Transfer-Encoding")
	delete(r.Header, "Trailer")
	r.Trailer = make(textproto.MIMEHeader)
	for item := range bytes.SplitSeq(list, []byte(",")) {
		if name := bytes.Trim(item, " \t"); len(name) > 0 {
			r.Trailer[textproto.CanonicalMIMEHeaderKey(string(name))] = nil
		}
	}
}

// parseLength reads 1*DIGIT that fits an int64.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// plausibleHost refuses what no host and port can hold. The name itself is
// judged later; this keeps the value from being read in two ways.
func plausibleHost(h string) bool {
	for i := range len(h) {
		c := h[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`,/\@?#"<>^{|}`+"`", c) >= 0 {
			return false
		}
	}
	return h != ""
}

// lists reports whether the comma list holds the token, in any case.
func lists(list []byte, token string) bool {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		if strings.EqualFold(string(bytes.Trim(item, " \t")), token) {
			return true
		}
	}
	return false
}

// Lists reports whether the comma list holds the token, in any case.
func Lists(list, token string) bool { return lists([]byte(list), token) }

// IsToken reports whether s is a token (RFC 9110 section 5.6.2).
func IsToken(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// checkTrailerNames refuses a Trailer that announces a field which frames or
// routes a message.
func checkTrailerNames(list []byte) *Error {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		if name := bytes.Trim(item, " \t"); !allowedTrailer(name) {
			return malformed("Trailer announces a field that may not be a trailer")
		}
	}
	return nil
}

// allowedTrailer reports whether a trailer field may have this name (RFC 9110
// section 6.5.1: not one for framing, routing, request control or
// authentication).
func allowedTrailer(name []byte) bool {
	if !isToken(name) {
		return false
	}
	switch strings.ToLower(string(name)) {
	case "transfer-encoding", "content-length", "host", "trailer", "te", "connection", "upgrade",
		"keep-alive", "proxy-connection", "expect", "authorization", "proxy-authorization", "cookie",
		"cache-control", "max-forwards", "range", "content-encoding", "content-type", "content-range":
		return false
	}
	return true
}
