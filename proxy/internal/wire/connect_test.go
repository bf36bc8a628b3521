package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestParseConnect(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want Connect
		ok   bool
	}{
		{"plain", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n", Connect{Authority: "a.example:443", Host: "a.example:443", HasHost: true, Minor: 1}, true},
		{"HTTP/1.0 without Host", "CONNECT a.example:443 HTTP/1.0\r\n\r\n", Connect{Authority: "a.example:443", Host: "", HasHost: false, Minor: 0}, true},
		{"HTTP/1.1 without Host", "CONNECT a.example:443 HTTP/1.1\r\n\r\n", Connect{Authority: "a.example:443", Host: "", HasHost: false, Minor: 1}, true},
		{"other headers", "CONNECT a:1 HTTP/1.1\r\nhOST:a:1\r\nProxy-Authorization: Basic Zm9vOmJhcg==\r\nUser-Agent: x y\t\r\nContent-Length: 0\r\n\r\n", Connect{
			Authority: "a:1", Host: "a:1", HasHost: true, Minor: 1, HasProxyAuth: true, ProxyAuth: "Basic Zm9vOmJhcg==",
		}, true},
		{"high bytes in a value", "CONNECT a:1 HTTP/1.1\r\nX: \xff\r\n\r\n", Connect{Authority: "a:1", Host: "", HasHost: false, Minor: 1}, true},

		{"empty credentials", "CONNECT a:1 HTTP/1.1\r\nproxy-authorization:\r\n\r\n", Connect{Authority: "a:1", Minor: 1, HasProxyAuth: true}, true},

		{"two credentials", "CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: a\r\nProxy-Authorization: a\r\n\r\n", Connect{}, false},
		{"two Hosts", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nHost: a:1\r\n\r\n", Connect{}, false},
		{"Transfer-Encoding", "CONNECT a:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", Connect{}, false},
		{"Content-Length", "CONNECT a:1 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", Connect{}, false},
		{"space before the colon", "CONNECT a:1 HTTP/1.1\r\nHost : a:1\r\n\r\n", Connect{}, false},
		{"folded header", "CONNECT a:1 HTTP/1.1\r\nX: a\r\n b\r\n\r\n", Connect{}, false},
		{"header without a name", "CONNECT a:1 HTTP/1.1\r\n: a\r\n\r\n", Connect{}, false},
		{"header without a colon", "CONNECT a:1 HTTP/1.1\r\nHost\r\n\r\n", Connect{}, false},
		{"control byte in a value", "CONNECT a:1 HTTP/1.1\r\nX: \x01\r\n\r\n", Connect{}, false},
		{"no version", "CONNECT a:1\r\n\r\n", Connect{}, false},
		{"HTTP/2.0", "CONNECT a:1 HTTP/2.0\r\n\r\n", Connect{}, false},
		{"two spaces", "CONNECT  a:1 HTTP/1.1\r\n\r\n", Connect{}, false},
		{"two spaces before the version", "CONNECT a:1  HTTP/1.1\r\n\r\n", Connect{}, false},
		{"tab", "CONNECT a:1\tHTTP/1.1\r\n\r\n", Connect{}, false},
		{"trailing space", "CONNECT a:1 HTTP/1.1 \r\n\r\n", Connect{}, false},
		{"lower case", "connect a:1 HTTP/1.1\r\n\r\n", Connect{}, false},
		{"empty authority", "CONNECT  HTTP/1.1\r\n\r\n", Connect{}, false},
		{"high byte in the authority", "CONNECT \xc3\xa4:1 HTTP/1.1\r\n\r\n", Connect{}, false},
		{"bytes behind", "CONNECT a:1 HTTP/1.1\r\n\r\nx", Connect{}, false},
		{"no end", "CONNECT a:1 HTTP/1.1\r\n", Connect{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseConnect([]byte(tt.in))
			if (err == nil) != tt.ok || got != tt.want && tt.ok {
				t.Errorf("got %+v, %v", got, err)
			}
			if err != nil && !errors.Is(err, ErrMalformed) {
				t.Errorf("%v is not ErrMalformed", err)
			}
		})
	}
}

func TestHeadEnd(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want State
	}{
		{"CONNECT a:1 HTTP/1.1\r\n\r\n", 24, Done},
		{"CONNECT a:1 HTTP/1.1\r\n\r\nmore\n", 24, Done},
		{"CONNECT a:1 HTTP/1.1\r\nX: y\r\n\r\n", 30, Done},
		{"", 0, More},
		{"CONNECT a:1 HTTP/1.1\r\n\r", 0, More},
		{"CONNECT a:1 HTTP/1.1\n\n", 0, Bad},
		{"CONNECT a:1 HTTP/1.1\r\n\n", 0, Bad},
		{"CONNECT a:1 HTTP/1.1\r\r\n\r\n", 0, Bad},
		{"CONNECT a:1\x00 HTTP/1.1\r\n\r\n", 0, Bad},
	}
	for _, tt := range tests {
		if n, st := HeadEnd([]byte(tt.in), 0); n != tt.n || st != tt.want {
			t.Errorf("%q: %d, state %d; want %d, state %d", tt.in, n, st, tt.n, tt.want)
		}
		for i, from := 0, 0; i <= len(tt.in); i++ { // byte by byte
			n, st := HeadEnd([]byte(tt.in[:i]), from)
			from = i
			if st == More {
				if i == len(tt.in) && tt.want != More {
					t.Errorf("%q byte by byte: never ends", tt.in)
				}
				continue
			}
			if n != tt.n || st != tt.want {
				t.Errorf("%q byte by byte: %d, state %d", tt.in, n, st)
			}
			break
		}
	}
}

// FuzzConnect checks that what is read as CONNECT can be read in one way only:
// putting it together again gives the same authority and Host.
func FuzzConnect(f *testing.F) {
	f.Add("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
	f.Add("CONNECT [::1]:443 HTTP/1.0\r\n\r\n")
	f.Add("CONNECT a:1 HTTP/1.1\nHost: b\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		n, st := HeadEnd([]byte(in), 0)
		if st != Done {
			return
		}
		c, err := ParseConnect([]byte(in[:n]))
		if err != nil {
			return
		}
		if strings.ContainsAny(c.Authority, " \t\r\n\x00") || strings.ContainsAny(c.Host, "\r\n\x00") {
			t.Fatalf("%q gives %+v", in, c)
		}
		again := "CONNECT " + c.Authority + " HTTP/1." + string(rune('0'+c.Minor)) + "\r\n"
		if c.HasHost {
			again += "Host: " + c.Host + "\r\n"
		}
		if got, err := ParseConnect([]byte(again + "\r\n")); err != nil || got != c {
			t.Fatalf("%q: %+v, then %+v, %v", in, c, got, err)
		}
	})
}
