package proxy

import (
	"net"
	"testing"

	"egressd/event"
	"egressd/proxy/internal/peek"
)

// TestRecognise finds the door by the first bytes, however they are cut, and
// consumes none.
func TestRecognise(t *testing.T) {
	for _, tt := range []struct {
		first string
		want  recognisable
	}{
		{"\x05\x01\x00", socks5{}},
		{"\x04\x01\x00\x50", socks4{}},
		{"CONNECT a.example:443 HTTP/1.1\r\n", connect{}},
		{"CONNECTED / HTTP/1.1\r\n", plainHTTP{}},
		{"GET http://a.example/ HTTP/1.1\r\n", plainHTTP{}},
		{"connect a.example:443 HTTP/1.1\r\n", plainHTTP{}},
		{"\x16\x03\x01", unknown{}},
		{"\x00", unknown{}},
		{"\xff\xff", unknown{}},
		{" GET /", unknown{}},
	} {
		for cut := 1; cut <= len(tt.first); cut++ {
			ours, theirs := net.Pipe()
			go func() {
				_, _ = ours.Write([]byte(tt.first[:cut]))
				_, _ = ours.Write([]byte(tt.first[cut:]))
				ours.Close()
			}()
			c := newConn(new(Server), theirs, event.DoorHTTP)
			if err := c.More(peek.BufferBytes); err != nil {
				t.Fatal(err)
			}
			got, err := recognise(c)
			if err != nil || got != tt.want {
				t.Errorf("%q after %d bytes: %T, %v", tt.first, cut, got, err)
			}
			if held := string(c.Held()); held != tt.first[:len(held)] || len(held) < cut {
				t.Errorf("%q after %d bytes: %q is left", tt.first, cut, held)
			}
			theirs.Close()
		}
	}
}
