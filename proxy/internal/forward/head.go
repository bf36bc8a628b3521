package forward

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
)

var errUnsendable = errors.New("the request holds a byte that no head may hold")

// appendHead appends the head of out as it goes to a plain-HTTP origin: the
// target as sent, the judged authority, out's fields in the order of their names.
func (x *exchange) appendHead(b []byte, out *http.Request) ([]byte, error) {
	b = append(append(b, out.Method...), ' ')
	path := x.Path
	if x.Absolute {
		b = append(append(b, "http://"...), x.HostField...)
		if path == "*" {
			path = "" // RFC 9112 section 3.2.4
		}
	}
	b = append(append(b, path...), x.Query...)
	if slices.ContainsFunc(b[len(out.Method)+1:], func(c byte) bool { return c <= ' ' || c == 0x7f }) {
		return b, errUnsendable
	}
	b = append(b, " HTTP/1.1\r\n"...)
	b, err := appendField(b, "Host", x.HostField)
	if err != nil {
		return b, err
	}
	if b, err = appendFields(b, out.Header); err != nil {
		return b, err
	}
	if b, err = appendFraming(b, out); err != nil {
		return b, err
	}
	return append(b, "\r\n"...), nil
}

// appendFraming appends the fields that say where the content of out ends.
func appendFraming(b []byte, out *http.Request) (_ []byte, err error) {
	switch _, stated := out.Header["Content-Length"]; {
	case out.ContentLength > 0, stated, out.Method == "POST", out.Method == "PUT", out.Method == "PATCH":
		if out.ContentLength >= 0 {
			b = append(b, "Content-Length: "...)
			b = strconv.AppendInt(b, out.ContentLength, 10)
			return append(b, "\r\n"...), nil
		}
	}
	if out.ContentLength == 0 {
		return b, nil
	}
	b = append(b, "Transfer-Encoding: chunked\r\n"...)
	for _, name := range sortedNames(out.Trailer) {
		if b, err = appendField(b, "Trailer", name); err != nil {
			return b, err
		}
	}
	return b, nil
}

// appendFields appends all fields but those that route and frame a message.
func appendFields(b []byte, h http.Header) (_ []byte, err error) {
	var room [32]string
	names := room[:0]
	for name := range h {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range h[name] {
			if b, err = appendField(b, name, v); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// appendField appends one field line.
//
// Threat: a value with a line break in it, from a secret or from whatever changed
// the request, adds fields or a second request -> no head with a control byte is
// sent.
func appendField(b []byte, name, value string) ([]byte, error) {
	start := len(b)
	b = append(b, name...)
	for _, c := range b[start:] {
		if c <= ' ' || c >= 0x7f || c == ':' {
			return b, errUnsendable
		}
	}
	b = append(append(b, ": "...), value...)
	for _, c := range b[len(b)-len(value):] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return b, errUnsendable
		}
	}
	if name == "" {
		return b, errUnsendable
	}
	return append(b, "\r\n"...), nil
}

func sortedNames(h http.Header) []string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
