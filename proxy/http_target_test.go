package proxy

import (
	"strconv"
	"testing"

	"egressd/policy"
	"egressd/proxy/internal/http1"
)

func TestTarget(t *testing.T) {
	host := func(s string) policy.Host {
		h, err := policy.ParseHost(s)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	explicit := scope{}
	fixed := scope{host: host("a.test"), port: 80}
	inner := scope{host: host("a.test"), port: 443, tls: true}
	captured := scope{captured: true, port: 80}
	for _, tt := range []struct {
		name       string
		sc         scope
		line, host string // host "-": no Host field
		to         string // "host:port server:port"; "" is malformed
	}{
		{"explicit", explicit, "GET http://a.test/x", "a.test", "a.test:80 a.test:0"},
		{"explicit with a port", explicit, "GET http://a.test:8080/x", "a.test:8080", "a.test:8080 a.test:8080"},
		{"explicit v6", explicit, "GET http://[2001:DB8::1]:81/", "[2001:db8::1]:81", "2001:db8::1:81 2001:db8::1:81"},
		{"explicit dot and case", explicit, "GET http://A.TEST./", "a.test", "a.test:80 a.test:0"},
		{"explicit, other Host", explicit, "GET http://a.test/", "b.test", "a.test:80 b.test:0"},
		{"explicit, no Host", explicit, "GET http://a.test/", "-", "a.test:80 a.test:80"},
		{"explicit origin-form", explicit, "GET /x", "a.test", ""},
		{"explicit https", explicit, "GET https://a.test/", "a.test", ""},
		{"explicit star", explicit, "OPTIONS *", "a.test", ""},
		{"explicit port 0", explicit, "GET http://a.test:0/", "a.test", ""},
		{"fixed", fixed, "GET /x", "a.test", "a.test:80 a.test:0"},
		{"fixed, stated port", fixed, "GET /x", "a.test:80", "a.test:80 a.test:80"},
		{"fixed, other Host", fixed, "GET /x", "b.test", "a.test:80 b.test:0"},
		{"fixed absolute", fixed, "GET http://a.test/x", "a.test", "a.test:80 a.test:0"},
		{"fixed, other absolute", fixed, "GET http://b.test/x", "a.test", "a.test:80 b.test:0"},
		{"fixed, absolute to another port", fixed, "GET http://a.test:81/x", "a.test", "a.test:80 a.test:81"},
		{"fixed https", fixed, "GET https://a.test/x", "a.test", ""},
		{"fixed, no Host", fixed, "GET /x", "-", "a.test:80 :0"},
		{"fixed CONNECT", fixed, "CONNECT a.test:80", "a.test:80", ""},
		{"fixed star", fixed, "OPTIONS *", "a.test", "a.test:80 a.test:0"},
		{"inner https", inner, "GET https://a.test/x", "a.test", "a.test:443 a.test:0"},
		{"inner http", inner, "GET http://a.test/x", "a.test", ""},
		{"captured", captured, "GET /x", "c.test", "c.test:80 c.test:0"},
		{"captured, other absolute", captured, "GET http://b.test/x", "c.test", "c.test:80 b.test:0"},
		{"captured, no Host", captured, "GET /x", "-", ""},
		{"odd IPv4 in Host", captured, "GET /x", "127.1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := tt.line + " HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n"
			if tt.host == "-" {
				head = tt.line + " HTTP/1.0\r\n\r\n"
			}
			f := http1.ParseHead([]byte(head))
			if f.Err != nil {
				t.Fatal(f.Err)
			}
			r, bad := tt.sc.target(f)
			got := ""
			if bad == "" {
				got = r.Host.String() + ":" + portText(r.Port) + " " + r.HTTPHost.String() + ":" + portText(r.HTTPPort)
			}
			equal(t, "target ("+bad+")", got, tt.to)
		})
	}
}

func portText(p uint16) string { return strconv.Itoa(int(p)) }
