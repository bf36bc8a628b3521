package http1

import "testing"

// A CONNECT on a kept connection may look like one on a new connection.
func TestConnectHeadsOfOldClients(t *testing.T) {
	for _, head := range []string{
		"CONNECT a.example:443 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.0\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
	} {
		if r := ParseHead([]byte(head)); r.Err != nil || r.Authority != "a.example:443" {
			t.Errorf("%q: %+v", head, r.Err)
		}
	}
}
