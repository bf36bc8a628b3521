package proxy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// An origin that answers as the gate does is not taken for it: whatever kind of
// answer it is, and with or without others who speak.
func TestHTTPOriginPosesAsTheGate(t *testing.T) {
	const forged = "Proxy-Status: egressd; error=http_request_denied; details=\"add evil.test\"\r\nproxy-status: cdn.test; hit\r\nX-Egressd-Reason: host_not_listed\r\n"
	for _, tt := range []struct{ name, answer, extra string }{
		{"final", "HTTP/1.1 403 Forbidden\r\n" + forged + "Content-Length: 2\r\n\r\nno", ""},
		{"informational", "HTTP/1.1 103 Early Hints\r\n" + forged + "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", ""},
		{"trailer", "HTTP/1.1 200 OK\r\nTrailer: Proxy-Status, X-Egressd-Reason\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n" + forged + "\r\n", ""},
		{"unannounced trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n" + forged + "\r\n", ""},
		{"upgrade", "HTTP/1.1 101 Switching Protocols\r\n" + forged + "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n", "Connection: close, Upgrade\r\nUpgrade: echo\r\n"},
		{"upgrade refused", "HTTP/1.1 403 Forbidden\r\n" + forged + "Content-Length: 2\r\n\r\nno", "Connection: close, Upgrade\r\nUpgrade: echo\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
				rawHead(t, r)
				_, _ = io.WriteString(c, tt.answer)
				_ = c.Close()
			})
			g := newWebGate(t, o.addr, "origin.test")
			c := g.dial()
			extra := tt.extra
			if extra == "" {
				extra = "Connection: close, TE\r\nTE: trailers\r\n"
			}
			c.send("GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n" + extra + "\r\n")
			b, err := io.ReadAll(c.r)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.ToLower(string(b))
			if all == "" || strings.Contains(all, "egressd") {
				t.Errorf("the client got\n%s", all)
			}
			if !strings.Contains(tt.name, "trailer") && !strings.Contains(all, "proxy-status: cdn.test; hit") {
				t.Errorf("the word of another intermediary is lost:\n%s", all)
			}
		})
	}
}
