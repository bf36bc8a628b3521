package exit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxHead bounds what an upstream proxy may answer to CONNECT.
const maxHead = 16 << 10

var errHead = errors.New("the upstream proxy answered something that is not HTTP, or too much of it")

// status is what an upstream proxy answered.
type status struct {
	code    int
	schemes []string // of Proxy-Authenticate, those that are known
}

// scheme names the schemes for a person.
func (s status) scheme() string { return strings.Join(s.schemes, ", ") }

// handshake sends CONNECT for target and reads the head of the answer, and not a byte
// more: what follows it is the origin's. The deadline is the caller's.
func handshake(c net.Conn, target, login string) (status, error) {
	var b strings.Builder
	b.WriteString("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: egressd\r\n")
	if login != "" {
		b.WriteString("Proxy-Authorization: " + basic(login) + "\r\n")
	}
	b.WriteString("\r\n")
	if _, err := io.WriteString(c, b.String()); err != nil {
		return status{}, err
	}
	head, err := readHead(c)
	if err != nil {
		return status{}, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return status{}, errHead
	}
	return status{code: resp.StatusCode, schemes: schemes(resp.Header)}, nil
}

// readHead reads to the empty line, byte by byte: a server may speak first, and what it
// says must stay in the connection.
func readHead(c net.Conn) ([]byte, error) {
	head := make([]byte, 0, 512)
	var one [1]byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) && !bytes.HasSuffix(head, []byte("\n\n")) {
		if len(head) == maxHead || len(head) >= 5 && !bytes.HasPrefix(head, []byte("HTTP/")) {
			return nil, errHead
		}
		n, err := c.Read(one[:])
		head = append(head, one[:n]...)
		if n == 0 && err != nil {
			return nil, err
		}
	}
	return head, nil
}

// schemes lists the login schemes of h that the gate has words for. Others are left
// out: the proxy chose the bytes.
func schemes(h http.Header) (out []string) {
	for _, v := range h.Values("Proxy-Authenticate") {
		for part := range strings.SplitSeq(v, ",") {
			word, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			for _, known := range []string{"Basic", "Digest", "NTLM", "Negotiate", "Kerberos", "Bearer"} {
				if strings.EqualFold(word, known) {
					out = append(out, known)
				}
			}
		}
	}
	return out
}
