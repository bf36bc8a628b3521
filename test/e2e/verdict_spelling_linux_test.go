package e2e

import "strings"

// spellingRows: hosts that can be read in two ways are bad requests at every
// door that can carry the spelling, even where one reading would be allowed.
var spellingRows = []row{
	{name: "an empty label", host: "exact..example.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a leading dot", host: ".exact.example.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "two trailing dots", host: "exact.example.com..", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a dot alone", host: ".", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "no host", host: "", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs"},
	{name: "a label of 64", host: strings.Repeat("a", 64) + ".wild.example.com", port: 443, say: tlsFor("x.wild.example.com"), want: bad, doors: "cs4"},
	{name: "a name of 254", host: strings.Repeat("abcdefg.", 29) + "abcde.wild.example.com", port: 443, say: tlsFor("x.wild.example.com"), want: bad, doors: "cs4"},
	{name: "userinfo that looks allowed", host: "exact.example.com@evil.example.org", port: 443, say: tlsFor("evil.example.org"), want: bad, doors: "cs4"},
	{name: "userinfo before an allowed name", host: "user:pass@exact.example.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a fragment", host: "evil.example.org#exact.example.com", port: 443, say: tlsFor("evil.example.org"), want: bad, doors: "cs4"},
	{name: "a path", host: "exact.example.com/x", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a query", host: "exact.example.com?x", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a backslash", host: "evil.example.org\\exact.example.com", port: 443, say: tlsFor("evil.example.org"), want: bad, doors: "cs4"},
	{name: "a NUL", host: "evil.example.org\x00exact.example.com", port: 443, say: tlsFor("evil.example.org"), want: bad, doors: "cs"},
	{name: "a NUL at the end", host: "exact.example.com\x00", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs"},
	{name: "a percent-encoded NUL", host: "exact.example.com%00.evil.example.org", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a percent-encoded dot", host: "exact%2eexample.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a space", host: "exact.example.com evil.example.org", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "s4"},
	{name: "a tab", host: "exact.example.com\tx", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a line feed", host: "exact.example.com\nx", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "s4"},
	{name: "DEL", host: "exact.example.com\x7f", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "an escape sequence", host: "\x1b[31mexact.example.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "s4"},
	{name: "bytes that are not UTF-8", host: "\xff\xfe.example.com", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	// Names travel as A-labels (RFC 9110 section 7.2, RFC 5890); U-labels are for policy files and explain.
	{name: "an IDN as U-label", host: "b\u00fccher.example.com", port: 443, say: tlsFor("xn--bcher-kva.example.com"), want: bad, doors: "cs4"},
	{name: "a Kelvin sign", host: "\u212avs.wild.example.com", port: 443, say: tlsFor("kvs.wild.example.com"), want: bad, doors: "cs4"},
	{name: "an ideographic full stop", host: "exact\u3002example.com", port: 443, say: tlsFor(exact), want: bad, doors: "cs4"},
	{name: "fullwidth letters", host: "\uff45xact.example.com", port: 443, say: tlsFor(exact), want: bad, doors: "cs4"},
	{name: "a soft hyphen", host: "ex\u00adact.example.com", port: 443, say: tlsFor(exact), want: bad, doors: "cs4"},
	{name: "a bracketed name", host: "[exact.example.com]", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a bracketed IPv4", host: "[11.77.0.1]", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "double brackets", host: "[[2600:77::1]]", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "an open bracket", host: "[2600:77::1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "a star", host: "*", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "a wildcard as a host", host: "*.wild.example.com", port: 443, say: tlsFor("x.wild.example.com"), want: bad, doors: "cs4"},
	{name: "a comma", host: "exact.example.com,evil.example.org", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a quote", host: "exact.example.com\"", port: 443, say: tlsFor("exact.example.com"), want: bad, doors: "cs4"},
	{name: "a zone", host: "[fe80::1%25lo]", port: 443, say: tlsFor("x"), want: bad, doors: "c"},
	{name: "a zone, unescaped", host: "[fe80::1%lo]", port: 443, say: tlsFor("x"), want: bad, doors: "c"},
	{name: "a zone on an allowed address", host: "[2600:77::1%lo]", port: 443, say: tlsFor("x"), want: bad, doors: "c"},

	// An IPv4 address has one spelling. These would all be 11.77.0.1, which is allowed.
	{name: "octal", host: "013.0115.0.1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "one octal part", host: "11.77.0.01", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "hex parts", host: "0xb.0x4d.0x0.0x1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "one hex number", host: "0x0b4d0001", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "one number", host: "189595649", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "three parts", host: "11.77.1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "two parts", host: "11.5046273", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "five parts", host: "11.77.0.0.1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "a part over 255", host: "11.77.0.257", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "loopback in octal", host: "0177.0.0.1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "loopback as one number", host: "2130706433", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "loopback in two parts", host: "127.1", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "metadata in hex", host: "0xa9fea9fe", port: 80, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "metadata in octal", host: "0251.0376.0251.0376", port: 80, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "zero", host: "0", port: 80, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "a number under a name", host: "example.123", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "hex under a name", host: "example.0x7f", port: 443, say: tlsFor("x"), want: bad, doors: "cs4"},
	{name: "too many groups", host: "[1:2:3:4:5:6:7:8:9]", port: 443, say: tlsFor("x"), want: bad, doors: "c"},
	{name: "two double colons", host: "[2600::77::1]", port: 443, say: tlsFor("x"), want: bad, doors: "c"},
}

// literalRows: addresses that nobody named. No name is involved, so no door may
// let them by for what an address is or was mapped from.
var literalRows = literals(
	"11.1.2.3", "8.8.8.8", "1.1.1.1", "11.77.0.2", "11.76.255.255", "11.201.0.1", "11.200.66.6",
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.9.7.255", "10.9.9.0", "100.64.0.1", "100.100.100.200", "100.127.255.254",
	"127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.0.1", "172.16.0.1", "172.31.255.254",
	"192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.254", "198.51.100.7", "203.0.113.9",
	"224.0.0.251", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:11.1.2.3", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
	"100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "2600:77::2", "2606:4700:4700::1111", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff02::fb",
)

func literals(addrs ...string) []row {
	var rows []row
	for _, a := range addrs {
		rows = append(rows, row{name: a, host: a, port: 5432, say: raw("PING\n"), want: deny, doors: "cs"})
	}
	return rows
}
