package policy

import (
	"net/netip"
	"strings"
	"testing"

	"egressd/policy/internal/names"
)

func TestParseHost(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	name253 := strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
	for _, tt := range []struct{ name, in, want string }{ // want "": an error
		{"plain", "api.example.com", "api.example.com"},
		{"one label", "localhost", "localhost"},
		{"case", "API.Example.COM", "api.example.com"},
		{"trailing dot", "example.com.", "example.com"},
		{"two trailing dots", "example.com..", ""},
		{"only a dot", ".", ""},
		{"leading dot", ".example.com", ""},
		{"empty label", "a..b", ""},
		{"empty", "", ""},
		{"underscore", "_dmarc.Example.com", "_dmarc.example.com"},
		{"hyphens in third and fourth place", "r3---sn-4g5e.googlevideo.com", "r3---sn-4g5e.googlevideo.com"},
		{"leading hyphen", "-a.example.com", ""},
		{"trailing hyphen", "a-.example.com", ""},
		{"U-label", "bücher.example", "xn--bcher-kva.example"},
		{"U-label, capitals", "BÜCHER.example", "xn--bcher-kva.example"},
		{"A-label", "xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"A-label, capitals", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"sharp s is not ss", "faß.de", "xn--fa-hia.de"},
		{"broken A-label", "xn--a.example", ""},
		{"A-label for plain ASCII", "xn--abc-.example", ""},
		{"Kelvin sign maps by IDNA", "\u212Aube.example.com", "kube.example.com"},
		{"long s maps by IDNA", "\u017Fsh.example.com", "ssh.example.com"},
		{"ideographic full stop", "example\u3002com", "example.com"},
		{"full-width dot and trailing dot", "example.com\uFF0E", ""},
		{"full-width digits are no address", "\uFF11\uFF12\uFF17.0.0.1", ""},
		{"full-width slash", "a\uFF0Fb.com", ""},
		{"soft hyphen vanishes by IDNA", "exam\u00ADple.com", "example.com"},
		{"zero-width joiner out of place", "a\u200Db.com", ""},
		{"bidi", "a\u05D0.com", ""},
		{"bad UTF-8", "a\xff.com", ""},
		{"63-byte label", label63 + ".com", label63 + ".com"},
		{"64-byte label", "a" + label63 + ".com", ""},
		{"253 bytes", name253, name253},
		{"253 bytes and a dot", name253 + ".", name253},
		{"254 bytes", name253 + "b", ""},
		{"very long", strings.Repeat("a.", 5000), ""},
		{"userinfo", "user@example.com", ""},
		{"userinfo and password", "u:p@example.com", ""},
		{"percent", "ex%61mple.com", ""},
		{"NUL", "example.com\x00.evil.org", ""},
		{"newline", "example.com\n", ""},
		{"space", "example .com", ""},
		{"leading space", " example.com", ""},
		{"tab", "example.com\t", ""},
		{"slash", "example.com/x", ""},
		{"comma", "a,b.com", ""},
		{"star", "*.example.com", ""},
		{"port", "example.com:443", ""},
		{"bracketed name", "[example.com]", ""},
		{"bracketed IPv4", "[1.2.3.4]", ""},
		{"double brackets", "[[::1]]", ""},
		{"open bracket", "[::1", ""},
		{"text after bracket", "[::1]x", ""},
		{"empty brackets", "[]", ""},
		{"IPv4", "192.0.2.1", "192.0.2.1"},
		{"IPv4 trailing dot", "192.0.2.1.", ""},
		{"IPv4 octal", "0177.0.0.1", ""},
		{"IPv4 leading zero", "127.0.0.01", ""},
		{"IPv4 hex", "0x7f.0.0.1", ""},
		{"IPv4 hex last", "127.0.0.0x1", ""},
		{"IPv4 all hex", "0x7f000001", ""},
		{"IPv4 bare 0x", "1.2.3.0x", ""},
		{"IPv4 capital hex", "0X7F000001", ""},
		{"IPv4 one number", "2130706433", ""},
		{"IPv4 two parts", "127.1", ""},
		{"IPv4 three parts", "127.0.1", ""},
		{"IPv4 five parts", "1.2.3.4.5", ""},
		{"IPv4 overflow", "256.0.0.1", ""},
		{"numeric last label", "example.123", ""},
		{"numeric first label", "123.example", "123.example"},
		{"digits within", "4chan.org", "4chan.org"},
		{"hex-like TLD", "example.0xyz", "example.0xyz"},
		{"IPv6", "2001:DB8::1", "2001:db8::1"},
		{"IPv6 brackets", "[2001:db8:0:0::1]", "2001:db8::1"},
		{"IPv6 zone", "fe80::1%eth0", ""},
		{"IPv6 zone in brackets", "[fe80::1%25eth0]", ""},
		{"IPv4-mapped", "::ffff:127.0.0.1", "127.0.0.1"},
		{"IPv4-mapped hex", "[::ffff:7f00:1]", "127.0.0.1"},
		{"IPv4-mapped octal", "::ffff:0177.0.0.1", ""},
		{"too many colons", "1:2:3:4:5:6:7:8:9", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := ParseHost(tt.in)
			if got := h.String(); err == nil && got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("ParseHost(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
			}
			if err != nil && !h.IsZero() {
				t.Errorf("ParseHost(%q) reports both a host and an error", tt.in)
			}
		})
	}
}

func TestParseAuthority(t *testing.T) {
	for _, tt := range []struct {
		in   string
		host string // "": an error
		port uint16
	}{
		{"example.com:443", "example.com", 443},
		{"Example.COM.:1", "example.com", 1},
		{"example.com:65535", "example.com", 65535},
		{"192.0.2.1:80", "192.0.2.1", 80},
		{"[2001:db8::1]:443", "2001:db8::1", 443},
		{"[::ffff:192.0.2.1]:443", "192.0.2.1", 443},
		{"example.com", "", 0},
		{"example.com:", "", 0},
		{":443", "", 0},
		{"", "", 0},
		{":", "", 0},
		{"example.com:0", "", 0},
		{"example.com:00", "", 0},
		{"example.com:0443", "", 0},
		{"example.com:65536", "", 0},
		{"example.com:99999999999999999999", "", 0},
		{"example.com:+443", "", 0},
		{"example.com:-443", "", 0},
		{"example.com: 443", "", 0},
		{"example.com:443 ", "", 0},
		{"example.com:0x1bb", "", 0},
		{"example.com:https", "", 0},
		{"example.com:\u0664\u0664\u0663", "", 0},
		{"2001:db8::1:443", "", 0},
		{"[2001:db8::1]", "", 0},
		{"[2001:db8::1]443", "", 0},
		{"[example.com]:443", "", 0},
		{"[192.0.2.1]:443", "", 0},
		{"[fe80::1%eth0]:443", "", 0},
		{"user@example.com:443", "", 0},
		{"user:pass@example.com:443", "", 0},
		{"https://example.com:443", "", 0},
		{"example.com:443/path", "", 0},
		{"example.com:443:443", "", 0},
	} {
		h, port, err := ParseAuthority(tt.in)
		if err == nil && (h.String() != tt.host || port != tt.port) || (err != nil) != (tt.host == "") {
			t.Errorf("ParseAuthority(%q) = %q, %d, %v, want %q, %d", tt.in, h, port, err, tt.host, tt.port)
		}
	}
}

func TestHostFromAddr(t *testing.T) {
	for in, want := range map[string]string{"::ffff:10.0.0.1": "10.0.0.1", "fe80::1%eth0": "fe80::1", "192.0.2.1": "192.0.2.1"} {
		if got := HostFromAddr(netip.MustParseAddr(in)).String(); got != want {
			t.Errorf("HostFromAddr(%s) = %s, want %s", in, got, want)
		}
	}
	if !HostFromAddr(netip.Addr{}).IsZero() {
		t.Error("the zero address makes a host")
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{
		"example.com", "EXAMPLE.com.", "bücher.example", "xn--bcher-kva.example", "[::1]", "::ffff:1.2.3.4",
		"127.1", "0x7f.1", "\u212A.com", "a\u3002b", "xn--a.xn--b", "1.2.3.4", "_x.y", "a\u200db.c", "\uFF11.2.3.4", "xn--0.pt",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			if !h.IsZero() {
				t.Fatalf("ParseHost(%q): host %q beside error %v", s, h, err)
			}
			return
		}
		if h.IsZero() || (h.Name() != "") == h.Addr().IsValid() {
			t.Fatalf("ParseHost(%q) is neither a name nor an address: %#v", s, h)
		}
		again, err := ParseHost(h.String())
		if err != nil || again != h {
			t.Fatalf("not idempotent: %q -> %q -> %q, %v", s, h, again, err)
		}
		if _, err := netip.ParseAddr(h.Name()); err == nil {
			t.Fatalf("ParseHost(%q): the name %q is an address", s, h)
		}
		if strings.ToLower(h.Name()) != h.Name() || len(h.Name()) > names.MaxBytes || strings.HasSuffix(h.Name(), ".") {
			t.Fatalf("ParseHost(%q): %q is not canonical", s, h)
		}
		if h.Addr().Is4In6() || h.Addr().Zone() != "" {
			t.Fatalf("ParseHost(%q): %q is not canonical", s, h)
		}
	})
}

func TestHostText(t *testing.T) {
	for _, s := range []string{"", "a.test", "xn--bcher-kva.example", "192.0.2.1", "2001:db8::1"} {
		h := host(t, s)
		text, err := h.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Host
		if err := back.UnmarshalText(text); err != nil || back != h {
			t.Errorf("%q became %q (%v)", s, back, err)
		}
	}
	h := host(t, "a.test")
	if err := h.UnmarshalText([]byte("a..b")); err == nil || !h.IsZero() {
		t.Errorf("a bad host became %q (%v)", h, err)
	}
}
