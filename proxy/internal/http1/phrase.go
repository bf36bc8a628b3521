package http1

import (
	"bytes"
	"time"
)

// SetPhrase sets the reason phrase of the current request's response, for which
// net/http has only its own. The phrase must be printable ASCII. Call it from the
// request's handler, right before it writes the head of a final response.
func (c *Conn) SetPhrase(phrase string) { c.phrase.Store(&phrase) }

// withPhrase is p with the phrase that is set, once, if p begins with a status
// line.
func (c *Conn) withPhrase(p []byte) []byte {
	const code = len("HTTP/1.1 403")
	if c.phrase.Load() == nil || !bytes.HasPrefix(p, []byte("HTTP/1.")) {
		return p
	}
	phrase := c.phrase.Swap(nil)
	end := bytes.Index(p, []byte("\r\n"))
	if phrase == nil || end < code {
		return p
	}
	return bytes.Join([][]byte{p[:code], []byte(" "), []byte(*phrase), p[end:]}, nil)
}

// Write writes to the client, within IdleTimeout, with the phrase that is set.
func (c *Conn) Write(p []byte) (int, error) {
	if c.IdleTimeout > 0 {
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.IdleTimeout)); err != nil {
			return 0, err
		}
	}
	q := c.withPhrase(p)
	n, err := c.Conn.Write(q)
	if len(q) != len(p) {
		n = max(0, n-max(0, len(q)-len(p))) // what the caller gave and is gone
		if err == nil {
			n = len(p)
		}
	}
	return n, err
}
