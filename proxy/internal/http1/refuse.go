package http1

import "bytes"

// hopeless refuses what can no longer become a head, so that nothing waits for
// an end that does not come. The bytes before from have been checked already.
//
// Threat: a client sends a long head byte by byte, to be read anew each time ->
// the request line is parsed when its end arrives, and not again. Left over: a
// search for that end per read.
func hopeless(buf []byte, from, limit int) *Error {
	if len(buf) >= limit {
		return &Error{Status: 431, Detail: "the request head is too large"}
	}
	if bytes.Contains(buf[from:], []byte("\n\n")) {
		return malformed("a line of the request head ends in LF without CR")
	}
	if i := bytes.IndexByte(buf, '\n'); i >= 0 {
		if i < from {
			return nil
		}
		var r Request
		line, _, err := cutLine(buf[:i+1])
		if err != nil {
			return err
		}
		return r.parseRequestLine(line)
	}
	for i, b := range buf {
		if b == ' ' {
			return nil
		}
		if !tokenByte(b) && !(b == '\r' && i == 0) {
			return malformed("the method is not a token")
		}
	}
	if len(buf) > maxMethod {
		return malformed("the method is not a token")
	}
	return nil
}
