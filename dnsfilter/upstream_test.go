package dnsfilter

import (
	"slices"
	"strings"
	"testing"
)

func TestParseUpstream(t *testing.T) {
	tests := []struct{ in, want string }{ // want "": refused
		{"1.1.1.1", "udp://1.1.1.1:53"},
		{"1.1.1.1:5353", "udp://1.1.1.1:5353"},
		{"::1", "udp://[::1]:53"},
		{"[::1]", "udp://[::1]:53"},
		{"[::1]:53", "udp://[::1]:53"},
		{"[fe80::1%eth0]:53", "udp://[fe80::1%eth0]:53"},
		{"UDP://192.0.2.1", "udp://192.0.2.1:53"},
		{"tcp://192.0.2.1:54", "tcp://192.0.2.1:54"},
		{"tls://192.0.2.1", "tls://192.0.2.1:853"},
		{"tls://[2001:db8::1]", "tls://[2001:db8::1]:853"},
		{"tls://DNS.Example@192.0.2.1:853", "tls://dns.example@192.0.2.1:853"},
		{"dns.example", ""},
		{"dns.example:53", ""},
		{"tls://dns.example", ""},
		{"tls://dns.example:853", ""},
		{"tls://192.0.2.2@192.0.2.1", ""},
		{"tls://@192.0.2.1", ""},
		{"udp://dns.example@192.0.2.1", ""},
		{"https://192.0.2.1/dns-query", ""},
		{"1.1.1.1:0", ""},
		{"1.1.1.1:053", ""},
		{"1.1.1.1:65536", ""},
		{"1.1.1.1:", ""},
		{"[::1]53", ""},
		{"[::1", ""},
		{"0.0.0.0", ""},
		{"224.0.0.251", ""},
		{"0x7f.1", ""},
		{"", ""},
		{"1.1.1.1 ", ""},
		{"1.1.1.1/path", ""},
	}
	for _, tt := range tests {
		u, err := ParseUpstream(tt.in)
		if tt.want == "" {
			if err == nil {
				t.Errorf("%q was read as %s", tt.in, u)
			}
			continue
		}
		if err != nil || u.String() != tt.want {
			t.Errorf("%q = %s, %v; want %s", tt.in, u, err, tt.want)
			continue
		}
		if again, err := ParseUpstream(u.String()); err != nil || again != u {
			t.Errorf("%s does not read back: %v, %v", u, again, err)
		}
	}
	if _, err := ParseUpstream("tls://dns.example"); err == nil || !strings.Contains(err.Error(), "tls://dns.example@192.0.2.1") {
		t.Errorf("%v; want the spelling that works", err)
	}
}

func TestSystemUpstreams(t *testing.T) {
	const conf = `# generated
; also a comment
search corp.example example.com
nameserver 192.0.2.1 # the first
  nameserver	2001:db8::1
nameserver fe80::1%eth0
nameserver dns.example
nameserver
nameserver 0.0.0.0
options timeout:1 attempts:3 edns0
NAMESERVER 192.0.2.9
`
	ups, err := SystemUpstreams([]byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range ups {
		got = append(got, u.String())
	}
	want := []string{"udp://192.0.2.1:53", "udp://[2001:db8::1]:53", "udp://[fe80::1%eth0]:53", "udp://127.0.0.1:53"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, conf := range []string{"", "search a\n", "nameserver\n", strings.Repeat("x", 1<<20)} {
		if ups, err := SystemUpstreams([]byte(conf)); err == nil {
			t.Errorf("%.20q: %v", conf, ups)
		}
	}
	if ups, _ := SystemUpstreams([]byte(strings.Repeat("nameserver 192.0.2.1\n", 1000))); len(ups) != maxSystemUpstreams {
		t.Errorf("%d upstreams", len(ups))
	}
}
