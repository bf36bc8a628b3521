package wire

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestBasicCredentials(t *testing.T) {
	basic := func(plain string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(plain)) }
	for _, tt := range []struct {
		name, field string
		token, bad  string // bad: a part of it
	}{
		{"token", basic("tok-a:"), "tok-a", ""},
		{"with a password", basic("tok-a:x:y"), "tok-a", ""},
		{"scheme in capitals", "BASIC " + base64.StdEncoding.EncodeToString([]byte("tok-a:")), "tok-a", ""},
		{"no base64", "Basic ???", "", "not base64"},
		{"another spelling of the same bytes", "Basic dG9rLWE6eB==", "", "not base64"},
		{"a line break", "Basic dG9r\r\nLWE6", "", "not base64"},
		{"no colon", basic("tok-a"), "", "no colon"},
		{"no user", basic(":password"), "", "empty"},
		{"too long", basic(strings.Repeat("t", MaxToken+1) + ":"), "", "too long"},
		{"control byte", basic("tok\x00a:"), "", "control byte"},
	} {
		c := BasicCredentials(tt.field, true)
		if !c.Sent || c.Other || (c.Bad == "") != (tt.bad == "") || !strings.Contains(c.Bad, tt.bad) || tt.bad == "" && c.Token != tt.token {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
	if c := BasicCredentials("Bearer tok-a", true); !c.Sent || !c.Other || c.Token != "" {
		t.Errorf("another scheme: %+v", c)
	}
	if c := BasicCredentials("", false); c != (Credentials{}) {
		t.Errorf("none: %+v", c)
	}
	words := map[string]bool{}
	for _, c := range []Credentials{{}, {Sent: true}, {Sent: true, Other: true}} {
		words[c.Missing()] = true
	}
	if len(words) != 3 {
		t.Errorf("%d ways of saying what is missing", len(words))
	}
}
