package policy

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	d, err := ParseFile("p.yaml", []byte("allow:\n  - api.example.com\n  - \"*.foo.com:*\"\n  - GET https://h.com/v1/**\npresets: [npm, github]\ndeny: [bad.foo.com]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"api.example.com:443", "api.example.com:22", "x.foo.com:1", "bad.foo.com:2", "foo.com:443", "h.com:443", "127.0.0.1:80", "github.com:443"} {
		h, port, err := ParseAuthority(in)
		if err != nil {
			t.Fatal(err)
		}
		dec := p.Decide(Request{Host: h, Port: port})
		t.Log(in, dec.Verdict, dec.Reason, dec.Needs, Suggest(Request{Host: h, Port: port}, dec))
	}
	for _, n := range PresetNames() {
		if _, err := Compile(&Document{Presets: []Entry{{Text: n}}}); err != nil {
			t.Error(err)
		}
	}
	t.Log(p.Digest())
}
