package http1

import (
	"bytes"
	"net/textproto"
	"strings"
)

// Specification constants.
const statusLineBytes = len("HTTP/1.1 200")

// Response holds one response head, as sent.
type Response struct {
	Status int // 100 to 999: some origins answer with codes above 599
	Minor  int // 0 or 1: HTTP/1.Minor

	// Header has canonical names. Transfer-Encoding is not in it,
	// nor Trailer beside it.
	Header textproto.MIMEHeader
	// Trailer has the announced names, with nil values until the end of the
	// content, and then what came. Nil: there can be none.
	Trailer textproto.MIMEHeader

	Length int64 // of the content; -1: not stated; 0 also when there can be none
	Last   bool  // nothing may follow on the connection

	body  body
	toEnd bool // the content ends with the connection
}

// responseFields gathers the fields that frame a response.
type responseFields struct {
	lengths, encodings int
	length             int64
	chunked, last      bool
	announced          []byte // the values of Trailer
}

func (f *responseFields) add(name, value []byte) *Error {
	switch {
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
		f.last = f.last || lists(value, "close")
	case is(name, "trailer"):
		f.announced = append(append(f.announced, value...), ',')
	}
	return nil
}

// ParseResponse reads the head of a response to a request with the method, from
// the status line to the empty line, both included.
//
// Threat: an origin sends a response that the gate and the client split at
// different places, so that a part of it is taken for the response to another
// request, perhaps another client's -> what RFC 9112 section 6.3 lets a client
// repair or ignore is refused here: two lengths, a length beside an encoding, an
// encoding of HTTP/1.0 or of a response without content, a folded line, a bare
// CR or LF -> the response does not reach the client, and the connection is not
// used again. Left over: an origin that answers with another response of its own.
func ParseResponse(head []byte, method string) (*Response, *Error) {
	r := new(Response)
	line, rest, err := cutLine(head)
	if err != nil {
		return nil, err
	}
	if err := r.parseStatusLine(line); err != nil {
		return nil, err
	}
	var f responseFields
	if r.Header, err = parseFields(head, rest, f.add); err != nil {
		return nil, err
	}
	if err := r.frame(&f, method); err != nil {
		return nil, err
	}
	return r, nil
}

// parseStatusLine reads HTTP/1.x SP 3DIGIT [ SP reason-phrase ].
func (r *Response) parseStatusLine(line []byte) *Error {
	const bad = "the status line is not: version, one space, three digits, reason"
	if len(line) < statusLineBytes || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' ||
		len(line) > statusLineBytes && line[statusLineBytes] != ' ' {
		return malformed(bad)
	}
	if line[7] != '0' && line[7] != '1' {
		return malformed("the version is not HTTP/1.1 or HTTP/1.0")
	}
	r.Minor = int(line[7] - '0')
	for _, c := range line[9:statusLineBytes] {
		if c < '0' || c > '9' {
			return malformed(bad)
		}
		r.Status = r.Status*10 + int(c-'0')
	}
	if r.Status < 100 {
		return malformed("the status code is below 100")
	}
	for _, c := range line[statusLineBytes:] {
		if c < ' ' && c != '\t' || c == 0x7f {
			return malformed("the reason phrase holds a control byte")
		}
	}
	return nil
}

// frame checks the fields against each other and works out the framing of the
// content (RFC 9112 section 6.3).
func (r *Response) frame(f *responseFields, method string) *Error {
	switch {
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
	}
	r.Last = f.last || r.Minor == 0
	if f.chunked {
		delete(r.Header, "Transfer-Encoding")
		delete(r.Header, "Trailer")
	}
	if r.Status < 200 || r.Status == 204 {
		if f.encodings > 0 || f.length > 0 {
			return malformed("a response that can have no content states its framing")
		}
		delete(r.Header, "Content-Length")
		return nil
	}
	switch {
	case method == "HEAD" || r.Status == 304:
	case f.chunked:
		r.Length, r.body.phase = -1, chunkSize
		r.Trailer = make(textproto.MIMEHeader)
		return r.announce(f.announced)
	case f.lengths == 0:
		r.Length, r.toEnd, r.Last = -1, true, true
	case f.length > 0:
		r.Length, r.body = f.length, body{phase: fixedData, left: f.length}
	}
	return nil
}

// announce reads the values of Trailer.
func (r *Response) announce(list []byte) *Error {
	for item := range bytes.SplitSeq(list, []byte(",")) {
		name := bytes.Trim(item, " \t")
		if len(name) == 0 {
			continue
		}
		if !allowedTrailer(name) {
			return malformed("Trailer announces a field that may not be a trailer")
		}
		r.Trailer[textproto.CanonicalMIMEHeaderKey(string(name))] = nil
	}
	return nil
}
