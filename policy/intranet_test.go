package policy

import (
	"net/netip"
	"strings"
	"testing"
)

func intranetPolicy(t *testing.T, text string) *Policy {
	t.Helper()
	d, err := ParseFile("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Names of the intranet may have private addresses, and no others that are special.
func TestIntranet(t *testing.T) {
	p := intranetPolicy(t, "allow: ['*.corp.test', corp.test, evilcorp.test, other.test, a.lan]\nintranet:\n  - corp.test\n  - .lan\n")
	for _, tt := range []struct {
		host, addr string
		local      bool
		want       Reason
	}{
		{"reg.corp.test", "10.1.2.3", false, ReasonAllowed},
		{"corp.test", "172.16.0.1", false, ReasonAllowed},
		{"a.b.corp.test", "192.168.1.1", false, ReasonAllowed},
		{"a.lan", "192.168.1.1", false, ReasonAllowed},
		{"reg.corp.test", "fd12::1", false, ReasonAllowed},
		{"reg.corp.test", "::ffff:10.1.2.3", false, ReasonAllowed},
		{"reg.corp.test", "8.8.8.8", false, ReasonAllowed},
		{"evilcorp.test", "10.1.2.3", false, ReasonIPProhibited},
		{"other.test", "10.1.2.3", false, ReasonIPProhibited},
		{"reg.corp.test", "10.1.2.3", true, ReasonIPProhibited},
		{"reg.corp.test", "8.8.8.8", true, ReasonIPProhibited},
		{"reg.corp.test", "127.0.0.1", false, ReasonIPProhibited},
		{"reg.corp.test", "::1", false, ReasonIPProhibited},
		{"reg.corp.test", "169.254.169.254", false, ReasonIPProhibited},
		{"reg.corp.test", "::ffff:169.254.169.254", false, ReasonIPProhibited},
		{"reg.corp.test", "fe80::1", false, ReasonIPProhibited},
		{"reg.corp.test", "fd00:ec2::254", false, ReasonIPProhibited},
		{"reg.corp.test", "fd20:ce::254", false, ReasonIPProhibited},
		{"reg.corp.test", "100.100.100.200", false, ReasonIPProhibited},
		{"reg.corp.test", "168.63.129.16", false, ReasonIPProhibited},
		{"reg.corp.test", "0.0.0.0", false, ReasonIPProhibited},
		{"reg.corp.test", "198.18.0.1", false, ReasonIPProhibited},
		{"unlisted.test", "10.1.2.3", false, ReasonHostNotListed},
	} {
		r := Request{Host: host(t, tt.host), Port: 443, Addr: netip.MustParseAddr(tt.addr), Local: tt.local}
		if d := p.Decide(r); d.Reason != tt.want {
			t.Errorf("%s at %s (local %v): %v, want %v", tt.host, tt.addr, tt.local, d.Reason, tt.want)
		}
	}
	// One address that may not be there denies them all.
	all := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("169.254.169.254")}
	if d := p.DecideAddrs(Request{Host: host(t, "reg.corp.test"), Port: 443}, all); d.Allowed() {
		t.Errorf("%+v", d)
	}
}

// Threat: a session names an intranet so as to reach the daemon's network.
func TestIntranetUnderACeiling(t *testing.T) {
	const rules = "allow: ['*.corp.test']\n"
	own := intranetPolicy(t, rules+"intranet: [corp.test]\n")
	r := Request{Host: host(t, "reg.corp.test"), Port: 443, Addr: netip.MustParseAddr("10.1.2.3")}
	if d := own.Under(intranetPolicy(t, rules)).Decide(r); d.Allowed() {
		t.Errorf("%+v", d)
	}
	if d := own.Under(own).Decide(r); !d.Allowed() {
		t.Errorf("%+v", d)
	}
	if d := intranetPolicy(t, rules).Under(own).Decide(r); d.Allowed() {
		t.Errorf("%+v", d)
	}
}

func TestIntranetEntries(t *testing.T) {
	for _, bad := range []string{"com", "co.uk", "github.io", "10.0.0.0/8", "10.1.2.3", "'*.corp.test'", "corp.test:443", "''", "a b"} {
		d, err := ParseFile("p.yaml", []byte("intranet:\n  - "+bad+"\n"))
		if err == nil {
			_, err = Compile(d)
		}
		if err == nil || !strings.Contains(err.Error(), "p.yaml:2:5") || !strings.Contains(err.Error(), "corp.example.com") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	a, b := intranetPolicy(t, "intranet: [a.corp.test, b.corp.test]\n"), intranetPolicy(t, "intranet: [.b.corp.test, a.corp.test]\n")
	if none := intranetPolicy(t, "allow: []\n"); a.Digest() != b.Digest() || a.Digest() == none.Digest() {
		t.Error("the digest does not tell the intranet")
	}
	if got := strings.Join(a.settingLines(), "\n"); !strings.Contains(got, "intranet: a.corp.test") {
		t.Errorf("settings %q", got)
	}
}
