package policy

import (
	"fmt"
	"testing"
)

func TestReach(t *testing.T) {
	for text, want := range map[string]string{
		"api.example.com":                    "{api.example.com true false invalid Prefix false false false false}",
		"*.example.com":                      "{example.com false true invalid Prefix false false false false}",
		".example.com":                       "{example.com true true invalid Prefix false false false false}",
		"api.example.com:443":                "{api.example.com true false invalid Prefix true false false false}",
		"api.example.com:*":                  "{api.example.com true false invalid Prefix true true false false}",
		"raw:api.example.com:443":            "{api.example.com true false invalid Prefix true false true false}",
		"203.0.113.0/24":                     "{ false false 203.0.113.0/24 false false false false}",
		"203.0.113.7:*":                      "{ false false 203.0.113.7/32 true true false false}",
		"[2001:db8::1]:443":                  "{ false false 2001:db8::1/128 true false false false}",
		"GET https://api.example.com/v1/**":  "{api.example.com true false invalid Prefix false false false true}",
		"POST https://api.example.com:8443/": "{api.example.com true false invalid Prefix true false false true}",
	} {
		p, err := Compile(&Document{Allow: []Entry{{Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		allow, _ := p.Rules()
		if got := fmt.Sprint(allow[0].Reach()); got != want {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
	p, err := Compile(&Document{Deny: []Entry{{Text: "x.example.com"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, deny := p.Rules(); !deny[0].Reach().AnyPort || deny[0].Reach().PortsListed {
		t.Error("a deny rule without ports is about all of them")
	}
	if (&Rule{}).Reach() != (Reach{}) {
		t.Error("a rule that was not compiled has a reach")
	}
}
