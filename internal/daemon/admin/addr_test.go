package admin

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseAddr(t *testing.T) {
	for _, tt := range []struct{ in, network, address, err string }{
		{"127.0.0.1:3131", "tcp", "127.0.0.1:3131", ""},
		{"[::1]:3131", "tcp", "[::1]:3131", ""},
		{":3131", "tcp", ":3131", ""},
		{"localhost:0", "tcp", "localhost:0", ""},
		{"unix:/run/egressd/admin.sock", "unix", "/run/egressd/admin.sock", ""},
		{"unix:admin.sock", "", "", "absolute path"},
		{"unix:", "", "", "absolute path"},
		{"unix:/" + strings.Repeat("x", 200), "", "", "at most"},
		{"unix:/a\x00b", "", "", "absolute path"},
		{"/run/admin.sock", "", "", "write unix:/run/admin.sock"},
		{"3131", "", "", "HOST:PORT or unix:PATH"},
		{"127.0.0.1", "", "", "HOST:PORT or unix:PATH"},
		{"127.0.0.1:http", "", "", "not a port"},
		{"127.0.0.1:03131", "", "", "not a port"},
		{"127.0.0.1:65536", "", "", "not a port"},
		{"127.1:3131", "", "", "not an address"},
		{"", "", "", "HOST:PORT or unix:PATH"},
	} {
		network, address, err := ParseAddr(tt.in)
		if network != tt.network || address != tt.address || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseAddr(%q) = %q, %q, %v; want %q, %q, %q", tt.in, network, address, err, tt.network, tt.address, tt.err)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"127.0.0.1:3131", "unix:/x", "[::1%lo]:1", "::"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		network, address, err := ParseAddr(s)
		if err != nil {
			return
		}
		if _, err := dialAddr(network, address); err != nil && !strings.Contains(fmt.Sprint(err), "port 0") {
			t.Fatalf("%q is accepted and can't be dialled: %v", s, err)
		}
	})
}
