package explain

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"egressd/policy"
)

// Every reason has words of its own.
func TestMeaningIsTotal(t *testing.T) {
	seen := make(map[string]policy.Reason)
	for r := policy.ReasonNoPolicy; r <= policy.ReasonInternal; r++ {
		words := Meaning(r)
		if words == "" || words == Meaning(policy.ReasonInternal+1) {
			t.Errorf("%s has no meaning", r)
		}
		if other, twice := seen[words]; twice {
			t.Errorf("%s and %s mean the same: %s", r, other, words)
		}
		seen[words] = r
	}
}

// A preset is shown as it is written, with the sources of its rules.
func TestPreset(t *testing.T) {
	npm, _ := policy.PresetText("npm")
	golang, _ := policy.PresetText("go")
	if text, err := Preset("egressd", []string{"npm", "go"}); err != nil || text != npm+golang || !strings.HasPrefix(text, "# ") {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := Preset("egressd", []string{"npm", "nope"}); err == nil || text != "" || !strings.Contains(err.Error(), "egressd presets lists them") {
		t.Errorf("got %q, %v", text, err)
	}
}

// With a look-up, the addresses are judged, and what helps is said.
func TestAddresses(t *testing.T) {
	d, err := policy.ParseFile("p.yaml", []byte("allow: [reg.corp.test, pub.test, a.lan]\nintranet: [lan]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(h policy.Host) ([]netip.Addr, error) {
		switch h.Name() {
		case "pub.test":
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		case "unknown.test":
			return nil, errors.New("no such name")
		}
		return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.1.2.3")}, nil
	}
	for target, want := range map[string]string{
		"reg.corp.test": "address 10.1.2.3 (private_use)\n  to allow it, if that is the server you mean, add:\n    --host reg.corp.test=10.1.2.3\n",
		"pub.test":      "allowed  pub.test:443\n",
		"a.lan":         "address 93.184.216.34, 10.1.2.3\n",
		"unknown.test":  "its addresses were not found: no such name\n",
	} {
		text, allowed, err := Answers(p, []string{target}, "", lookup)
		if err != nil || !strings.Contains(text, want) || allowed != (target == "pub.test" || target == "a.lan") {
			t.Errorf("%s: %v, %v, %s", target, allowed, err, text)
		}
	}
}
