package e2e

import "egressd/test/e2e/job"

func tlsFor(name string) job.Payload   { return job.Payload{Kind: "tls", SNI: name} }
func httpFor(host string) job.Payload  { return job.Payload{Kind: "http", Host: host} }
func hello(h job.Hello) job.Payload    { return job.Payload{Kind: "hello", Hello: h} }
func helloFor(n ...string) job.Payload { return hello(job.Hello{Names: n}) }
func raw(text string) job.Payload      { return job.Payload{Kind: "raw", Raw: []byte(text)} }

// names is the policy of most rows.
var names = []string{
	"--allow", "exact.example.com,*.wild.example.com,.dot.example.com",
	"--allow", "ssh.example.com:22", "--allow", "any.example.com:*",
	"--allow", "ranges.example.com:8000-8100", "--allow", "multi.example.com:22,443",
	"--allow", "raw:raw.example.com:443", "--allow", "xn--bcher-kva.example.com",
	"--allow", "alias.example.com", "--allow", "_srv.example.com",
	"--allow", "11.77.0.1", "--allow", "11.200.0.0/16:5432", "--allow", "10.9.8.0/24:5432", "--allow", "[2600:77::1]:443",
	"--allow", "static.example.com", "--host", "static.example.com=10.1.2.3",
	"--deny", "no.wild.example.com", "--deny", "*.deep.wild.example.com", "--deny", "port.wild.example.com:8443", "--deny", "11.200.66.0/24",
}

func verdictGroups() []group {
	return []group{
		{name: "names that a rule covers", flags: names, rows: allowedRows},
		{name: "names that no rule covers", flags: names, rows: unlistedRows},
		{name: "spellings", flags: names, rows: spellingRows},
		{name: "addresses as written", flags: names, rows: literalRows},
		{name: "addresses behind names", flags: []string{"--allow", "*.ip.example.net", "--allow", "*.ip.example.net:5432"}, rows: answerRows()},
		{name: "what is said on the wire", flags: names, rows: wireRows},
		{name: "no rules", rows: nothingRows},
		{name: "deny only", flags: []string{"--deny", "evil.example.com"}, rows: nothingRows},
		pathGroup(),
		{name: "hosts entries", flags: []string{"--host", "named.example.com=11.9.9.9"}, rows: hostsOnlyRows},
	}
}

var allowedRows = []row{
	{name: "exact, TLS", host: "exact.example.com", port: 443, say: tlsFor("exact.example.com"), want: allow},
	{name: "exact, HTTP", host: "exact.example.com", port: 80, say: httpFor("exact.example.com"), want: allow},
	{name: "exact, HTTP with the port in Host", host: "exact.example.com", port: 80, say: httpFor("exact.example.com:80"), want: allow},
	{name: "exact, HTTP with Host in capitals", host: "exact.example.com", port: 80, say: httpFor("EXACT.Example.COM"), want: allow},
	{name: "capitals", host: "EXACT.Example.com", port: 443, say: tlsFor("exact.example.com"), want: allow},
	{name: "trailing dot", host: "exact.example.com.", port: 443, say: tlsFor("exact.example.com"), want: allow},
	{name: "capitals in the SNI", host: "exact.example.com", port: 443, say: helloFor("EXACT.EXAMPLE.COM"), want: allow},
	{name: "one label below a wildcard", host: "a.wild.example.com", port: 443, say: tlsFor("a.wild.example.com"), want: allow},
	{name: "three labels below a wildcard", host: "a.b.c.wild.example.com", port: 443, say: tlsFor("a.b.c.wild.example.com"), want: allow},
	{name: "wildcard, HTTP", host: "web.wild.example.com", port: 80, say: httpFor("web.wild.example.com"), want: allow},
	{
		name: "a long label below a wildcard", host: "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk.wild.example.com", port: 443,
		say: tlsFor("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk.wild.example.com"), want: allow,
	},
	{name: "underscore below a wildcard", host: "_x.wild.example.com", port: 443, say: helloFor("_x.wild.example.com"), want: allow},
	{name: "the apex of a denied wildcard", host: "deep.wild.example.com", port: 443, say: tlsFor("deep.wild.example.com"), want: allow},
	{name: "a host of which another port is denied", host: "port.wild.example.com", port: 443, say: tlsFor("port.wild.example.com"), want: allow},
	{name: "dot rule, apex", host: "dot.example.com", port: 443, say: tlsFor("dot.example.com"), want: allow},
	{name: "dot rule, below", host: "a.dot.example.com", port: 443, say: tlsFor("a.dot.example.com"), want: allow},
	{name: "dot rule, deep below", host: "a.b.dot.example.com", port: 80, say: httpFor("a.b.dot.example.com"), want: allow},
	{name: "a server that speaks first", host: "ssh.example.com", port: 22, want: allow},
	{name: "any port, 9000", host: "any.example.com", port: 9000, say: raw("PING\n"), want: allow},
	{name: "any port, 25", host: "any.example.com", port: 25, say: raw("EHLO x\n"), want: allow},
	{name: "any port, 443 with TLS", host: "any.example.com", port: 443, say: tlsFor("any.example.com"), want: allow},
	{name: "any port, 80 with HTTP", host: "any.example.com", port: 80, say: httpFor("any.example.com"), want: allow},
	{name: "any port, TLS with its name", host: "any.example.com", port: 8443, say: tlsFor("any.example.com"), want: allow},
	{name: "any port, HTTP on 8080", host: "any.example.com", port: 8080, say: httpFor("any.example.com:8080"), want: allow},
	{name: "range, first", host: "ranges.example.com", port: 8000, say: raw("PING\n"), want: allow},
	{name: "range, middle", host: "ranges.example.com", port: 8050, say: raw("PING\n"), want: allow},
	{name: "range, last", host: "ranges.example.com", port: 8100, say: raw("PING\n"), want: allow},
	{name: "list, 22", host: "multi.example.com", port: 22, want: allow},
	{name: "list, 443", host: "multi.example.com", port: 443, say: tlsFor("multi.example.com"), want: allow},
	{name: "raw rule, bytes", host: "raw.example.com", port: 443, say: raw("PING\n"), want: allow},
	{name: "raw rule, TLS with another name", host: "raw.example.com", port: 443, say: tlsFor("other.example.com"), want: allow},
	{name: "raw rule, TLS without a name", host: "raw.example.com", port: 443, say: hello(job.Hello{}), want: allow},
	{name: "IDN as A-label", host: "xn--bcher-kva.example.com", port: 443, say: tlsFor("xn--bcher-kva.example.com"), want: allow},
	{name: "IDN as A-label in capitals", host: "XN--BCHER-KVA.example.com", port: 443, say: tlsFor("xn--bcher-kva.example.com"), want: allow},
	{name: "a CNAME's target needs no rule", host: "alias.example.com", port: 443, say: tlsFor("alias.example.com"), want: allow},
	{name: "a name that begins with an underscore", host: "_srv.example.com", port: 443, say: helloFor("_srv.example.com"), want: allow},
	{name: "address rule, TLS without a name", host: "11.77.0.1", port: 443, say: hello(job.Hello{}), want: allow},
	{name: "address rule, HTTP", host: "11.77.0.1", port: 80, say: httpFor("11.77.0.1"), want: allow},
	{name: "address rule, IPv6", host: "2600:77::1", port: 443, say: hello(job.Hello{}), want: allow},
	{name: "address rule, IPv6 spelled out", host: "2600:0077:0000:0:0:0:0:1", port: 443, say: hello(job.Hello{}), want: allow},
	{name: "network rule", host: "11.200.3.4", port: 5432, say: raw("PING\n"), want: allow},
	{name: "network rule, last address", host: "11.200.255.255", port: 5432, say: raw("PING\n"), want: allow},
	{name: "private network that a rule names", host: "10.9.8.7", port: 5432, say: raw("PING\n"), want: allow},
	{name: "hosts entry with a private address", host: "static.example.com", port: 443, say: tlsFor("static.example.com"), want: allow},
	{name: "GREASE ECH", host: "exact.example.com", port: 443, say: hello(job.Hello{Names: []string{"exact.example.com"}, GREASE: true}), want: allow},
	{name: "hello in 5 records", host: "exact.example.com", port: 443, say: hello(job.Hello{Names: []string{"exact.example.com"}, Records: 5}), want: allow},
	{name: "hello in 7 segments", host: "exact.example.com", port: 443, say: hello(job.Hello{Names: []string{"exact.example.com"}, Segments: 7}), want: allow},
	{name: "hello of 9 KiB", host: "exact.example.com", port: 443, say: hello(job.Hello{Names: []string{"exact.example.com"}, PadBytes: 9000}), want: allow},
	{name: "hello of 20 KiB in 3 records", host: "exact.example.com", port: 443, say: hello(job.Hello{Names: []string{"exact.example.com"}, PadBytes: 20000, Records: 3}), want: allow},
}

// unlistedRows: what looks like an allowed name and is not.
var unlistedRows = []row{
	{name: "another name", host: "unlisted.example.com", port: 443, say: tlsFor("unlisted.example.com"), reason: "host_not_listed"},
	{name: "another name, HTTP", host: "unlisted.example.com", port: 80, say: httpFor("unlisted.example.com"), reason: "host_not_listed"},
	{name: "the parent", host: "example.com", port: 443, say: tlsFor("example.com"), reason: "host_not_listed"},
	{name: "the top", host: "com", port: 443, say: tlsFor("com"), reason: "host_not_listed"},
	{name: "one label", host: "exact", port: 443, say: tlsFor("exact"), reason: "host_not_listed"},
	{name: "below a plain name", host: "www.exact.example.com", port: 443, say: tlsFor("www.exact.example.com"), reason: "host_not_listed"},
	{name: "the apex of a wildcard", host: "wild.example.com", port: 443, say: tlsFor("wild.example.com"), reason: "host_not_listed"},
	{name: "no dot before a wildcard's suffix", host: "evilwild.example.com", port: 443, say: tlsFor("evilwild.example.com"), reason: "host_not_listed"},
	{name: "no dot before a dot rule's suffix", host: "evildot.example.com", port: 443, say: tlsFor("evildot.example.com"), reason: "host_not_listed"},
	{name: "an allowed name as a prefix", host: "exact.example.com.evil.example.org", port: 443, say: tlsFor("exact.example.com.evil.example.org"), reason: "host_not_listed"},
	{name: "an allowed name as a prefix without a dot", host: "exact.example.comevil.example.org", port: 443, say: tlsFor("exact.example.comevil.example.org"), reason: "host_not_listed"},
	{name: "a hyphen for a dot", host: "exact-example.com", port: 443, say: tlsFor("exact-example.com"), reason: "host_not_listed"},
	{name: "any character for a dot", host: "exactxexample.com", port: 443, say: tlsFor("exactxexample.com"), reason: "host_not_listed"},
	{name: "another suffix", host: "exact.example.org", port: 443, say: tlsFor("exact.example.org"), reason: "host_not_listed"},
	{name: "a homograph", host: "xn--exct-63d.example.com", port: 443, say: tlsFor("xn--exct-63d.example.com"), reason: "host_not_listed"},
	{name: "an address in the name", host: "11.77.0.1.nip.example.org", port: 443, say: tlsFor("11.77.0.1.nip.example.org"), reason: "host_not_listed"},
	{name: "localhost", host: "localhost", port: 80, say: httpFor("localhost"), reason: "host_not_listed"},
	{name: "localhost below itself", host: "x.localhost", port: 80, say: httpFor("x.localhost"), reason: "host_not_listed"},
	{name: "a metadata name", host: "metadata.google.internal", port: 80, say: httpFor("metadata.google.internal"), reason: "host_not_listed"},
	{name: "data in labels", host: "4d5a9000.deadbeef.unlisted.example.com", port: 443, say: tlsFor("4d5a9000.deadbeef.unlisted.example.com"), reason: "host_not_listed"},
	{name: "DNS over HTTPS, a known resolver", host: "dns.google", port: 443, say: tlsFor("dns.google"), reason: "host_not_listed"},
	{name: "DNS over TLS, a known resolver", host: "one.one.one.one", port: 853, say: tlsFor("one.one.one.one"), reason: "host_not_listed"},
	{name: "denied below an allowed wildcard", host: "no.wild.example.com", port: 443, say: tlsFor("no.wild.example.com"), reason: "denied_by_rule"},
	{name: "denied, in capitals", host: "NO.Wild.example.COM", port: 443, say: tlsFor("no.wild.example.com"), reason: "denied_by_rule"},
	{name: "denied, trailing dot", host: "no.wild.example.com.", port: 443, say: tlsFor("no.wild.example.com"), reason: "denied_by_rule"},
	{name: "denied by a wildcard", host: "x.deep.wild.example.com", port: 443, say: tlsFor("x.deep.wild.example.com"), reason: "denied_by_rule"},
	{name: "denied deep below a wildcard", host: "x.y.deep.wild.example.com", port: 80, say: httpFor("x.y.deep.wild.example.com"), reason: "denied_by_rule"},
	{name: "443 only, 22", host: "exact.example.com", port: 22, reason: "port_not_listed"},
	{name: "443 only, 8443", host: "exact.example.com", port: 8443, say: tlsFor("exact.example.com"), reason: "port_not_listed"},
	{name: "443 only, 8080", host: "exact.example.com", port: 8080, say: httpFor("exact.example.com:8080"), reason: "port_not_listed"},
	{name: "443 only, 25", host: "exact.example.com", port: 25, say: raw("EHLO x\n"), reason: "port_not_listed"},
	{name: "443 only, 53", host: "exact.example.com", port: 53, say: raw("x"), reason: "port_not_listed", doors: "cs4"},
	{name: "443 only, 853", host: "exact.example.com", port: 853, say: tlsFor("exact.example.com"), reason: "port_not_listed"},
	{name: "443 only, 1", host: "exact.example.com", port: 1, say: raw("x"), reason: "port_not_listed"},
	{name: "443 only, 65535", host: "exact.example.com", port: 65535, say: raw("x"), reason: "port_not_listed"},
	{name: "22 only, 443", host: "ssh.example.com", port: 443, say: tlsFor("ssh.example.com"), reason: "port_not_listed"},
	{name: "22 only, 80", host: "ssh.example.com", port: 80, say: httpFor("ssh.example.com"), reason: "port_not_listed"},
	{name: "range, one below", host: "ranges.example.com", port: 7999, say: raw("x"), reason: "port_not_listed"},
	{name: "range, one above", host: "ranges.example.com", port: 8101, say: raw("x"), reason: "port_not_listed"},
	{name: "list, another", host: "multi.example.com", port: 80, say: httpFor("multi.example.com"), reason: "port_not_listed"},
	{name: "raw rule, another port", host: "raw.example.com", port: 80, say: raw("x"), reason: "port_not_listed"},
}

var nothingRows = []row{
	{name: "TLS", host: "exact.example.com", port: 443, say: tlsFor("exact.example.com")},
	{name: "HTTP", host: "exact.example.com", port: 80, say: httpFor("exact.example.com")},
	{name: "an address", host: "11.1.1.1", port: 443, say: hello(job.Hello{})},
	{name: "loopback", host: "127.0.0.1", port: 8080, say: httpFor("127.0.0.1:8080"), doors: "chs4"},
	{name: "SSH", host: "ssh.example.com", port: 22},
}

// hostsOnlyRows: an entry says where a name is, not that it may be reached.
var hostsOnlyRows = []row{
	{name: "a hosts entry is no rule", host: "named.example.com", port: 443, say: tlsFor("named.example.com"), reason: "host_not_listed"},
	{name: "its address is not opened either", host: "11.9.9.9", port: 443, say: hello(job.Hello{})},
}
