package e2e

import (
	"net/netip"
	"strings"

	"egressd/test/e2e/job"
)

const exact = "exact.example.com"

// wireRows: the door opens for an allowed name, and then the client says
// something that is for another.
var wireRows = []row{
	{name: "SNI of an unlisted name", host: exact, port: 443, say: tlsFor("evil.example.org"), want: cut, reason: "sni_mismatch"},
	{name: "SNI of another allowed name", host: exact, port: 443, say: tlsFor("a.wild.example.com"), want: cut, reason: "sni_mismatch"},
	{name: "SNI below the judged name", host: exact, port: 443, say: helloFor("x." + exact), want: cut, reason: "sni_mismatch"},
	{name: "SNI above the judged name", host: exact, port: 443, say: helloFor("example.com"), want: cut, reason: "sni_mismatch"},
	{name: "no SNI", host: exact, port: 443, say: hello(job.Hello{}), want: cut, reason: "sni_mismatch"},
	{name: "an address as SNI", host: exact, port: 443, say: helloFor("11.77.0.1"), want: cut},
	{name: "the judged name with a NUL", host: exact, port: 443, say: helloFor(exact + "\x00.evil.example.org"), want: cut},
	{name: "a NUL after another name", host: exact, port: 443, say: helloFor("evil.example.org\x00" + exact), want: cut},
	{name: "an empty SNI", host: exact, port: 443, say: helloFor(""), want: cut},
	{name: "two names, the judged one first", host: exact, port: 443, say: helloFor(exact, "evil.example.org"), want: cut},
	{name: "two names, the judged one last", host: exact, port: 443, say: helloFor("evil.example.org", exact), want: cut},
	{name: "server_name twice, the judged one first", host: exact, port: 443, say: hello(job.Hello{Names: []string{exact, "evil.example.org"}, Twice: true}), want: cut},
	{name: "server_name twice, the judged one last", host: exact, port: 443, say: hello(job.Hello{Names: []string{"evil.example.org", exact}, Twice: true}), want: cut},
	{name: "a name of another type", host: exact, port: 443, say: hello(job.Hello{Names: []string{exact}, NameType: 1}), want: cut},
	{name: "another name behind 9 KiB", host: exact, port: 443, say: hello(job.Hello{Names: []string{"evil.example.org"}, PadBytes: 9000}), want: cut, reason: "sni_mismatch"},
	{name: "another name over 4 records", host: exact, port: 443, say: hello(job.Hello{Names: []string{"evil.example.org"}, Records: 4}), want: cut, reason: "sni_mismatch"},
	{name: "another name over 40 segments", host: exact, port: 443, say: hello(job.Hello{Names: []string{"evil.example.org"}, Segments: 40}), want: cut, reason: "sni_mismatch"},
	{name: "another name beside GREASE ECH", host: exact, port: 443, say: hello(job.Hello{Names: []string{"evil.example.org"}, GREASE: true}), want: cut, reason: "sni_mismatch"},
	{name: "GREASE ECH without a name", host: exact, port: 443, say: hello(job.Hello{GREASE: true}), want: cut, reason: "sni_mismatch"},
	{name: "an SSLv2 hello", host: exact, port: 443, say: hello(job.Hello{SSLv2: true}), want: cut},
	{name: "HTTP on 443", host: exact, port: 443, say: httpFor(exact), want: cut, reason: "not_tls", doors: "chs4d"},
	{name: "bytes on 443", host: exact, port: 443, say: raw("EXFIL\n"), want: cut, reason: "not_tls"},
	{name: "SSH on 443", host: exact, port: 443, say: raw("SSH-2.0-x\r\n"), want: cut, reason: "not_tls"},
	{name: "a TLS alert on 443", host: exact, port: 443, say: raw("\x15\x03\x01\x00\x02\x02\x28"), want: cut},
	{name: "application data on 443", host: exact, port: 443, say: raw("\x17\x03\x03\x00\x05EXFIL"), want: cut},
	{name: "TLS on 80", host: exact, port: 80, say: tlsFor(exact), want: cut, reason: "not_http"},
	{name: "bytes on 80", host: exact, port: 80, say: raw("EXFIL\r\n\r\n"), want: cut, reason: "not_http"},
	{name: "SSH on 80", host: exact, port: 80, say: raw("SSH-2.0-x\r\n"), want: cut, reason: "not_http"},
	{name: "the HTTP/2 preface on 80", host: exact, port: 80, say: raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), want: cut},
	{name: "HTTP/0.9", host: exact, port: 80, say: raw("GET /\r\n\r\n"), want: cut},
	{name: "HTTP/1.0 without a Host", host: exact, port: 80, say: raw("GET / HTTP/1.0\r\n\r\n"), want: cut},
	{name: "HTTP/1.1 without a Host", host: exact, port: 80, say: httpFor("-"), want: cut},
	{name: "Host of an unlisted name", host: exact, port: 80, say: httpFor("evil.example.org"), want: cut, reason: "host_mismatch"},
	{name: "Host of another allowed name", host: exact, port: 80, say: httpFor("a.wild.example.com"), want: cut, reason: "host_mismatch"},
	{name: "Host with another port", host: exact, port: 80, say: httpFor(exact + ":8080"), want: cut, reason: "host_mismatch"},
	{name: "Host with userinfo", host: exact, port: 80, say: httpFor(exact + "@evil.example.org"), want: cut},
	{name: "Host that is an address", host: exact, port: 80, say: httpFor("11.77.0.1"), want: cut},
	{name: "two Hosts", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost: " + exact + "\r\nHost: evil.example.org\r\n\r\n"), want: cut},
	{name: "two Hosts, the judged one last", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost: evil.example.org\r\nHost: " + exact + "\r\n\r\n"), want: cut},
	{name: "Host folded", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost:\r\n evil.example.org\r\n\r\n"), want: cut},
	{name: "a space before Host's colon", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost : evil.example.org\r\nHost: " + exact + "\r\n\r\n"), want: cut},
	{name: "a list in Host", host: exact, port: 80, say: httpFor(exact + ", evil.example.org"), want: cut},
	{name: "absolute-form for another name in a tunnel", host: exact, port: 80, say: raw("GET http://evil.example.org/ HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"), want: cut},
	{name: "CONNECT in a tunnel", host: exact, port: 80, say: raw("CONNECT evil.example.org:443 HTTP/1.1\r\nHost: evil.example.org:443\r\n\r\n"), want: cut},
	{name: "a bare CR in a header", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost: " + exact + "\r\nX: a\rHost: evil.example.org\r\n\r\n"), want: cut},
	{name: "a NUL in a header", host: exact, port: 80, say: raw("GET / HTTP/1.1\r\nHost: " + exact + "\r\nX: a\x00b\r\n\r\n"), want: cut},
	{name: "TLS for another name on an open port", host: "any.example.com", port: 8443, say: tlsFor("evil.example.org"), want: cut, dials: true},
	{name: "TLS without a name on an open port", host: "any.example.com", port: 8443, say: hello(job.Hello{}), want: cut, dials: true},
	{name: "TLS with an SNI at an address", host: "11.77.0.1", port: 80, say: tlsFor("evil.example.org"), want: cut},
}

// answerRows: the name is allowed, and what it resolves to is not. One bad
// answer is enough.
func answerRows() []row {
	var rows []row
	add := func(addrs ...string) {
		name := ipName(addrs...)
		rows = append(rows, row{
			name: strings.Join(addrs, " and "), host: name, port: 443, say: tlsFor(name), want: deny, asks: true,
			reason: "destination_ip_prohibited",
		})
	}
	for _, a := range []string{
		"0.0.0.0", "10.0.0.5", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1", "192.0.0.1", "192.168.1.1",
		"198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1",
	} {
		add(a)
	}
	add("11.5.5.5", "127.0.0.1")
	add("127.0.0.1", "11.5.5.5")
	add("11.5.5.5", "11.5.5.6", "10.0.0.1")
	add("11.5.5.5", "::1")
	add("11.5.5.5", "fe80::1")
	add("2600::5", "169.254.169.254")
	public := ipName("11.5.5.5", "11.5.5.6")
	rows = append(rows, row{name: "only public answers", host: public, port: 443, say: tlsFor(public), want: allow})
	// The mapped form travels as 16 bytes, which the world would send as AAAA.
	mapped := netip.MustParseAddr("::ffff:127.0.0.1").As16()
	name := hexName(mapped[:])
	rows = append(rows, row{name: "IPv4-mapped loopback as AAAA", host: name, port: 443, say: tlsFor(name), want: deny, asks: true})
	return rows
}
