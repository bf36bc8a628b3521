package canonical

import (
	"strings"
	"testing"
)

// The texts are what JSON.stringify writes, with members in the order of RFC 8785.
func TestCanonicalText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"b": 2, "a" : {"d":[1,2,{"z":true,"y":null}],"c":"x"}}`, `{"a":{"c":"x","d":[1,2,{"y":null,"z":true}]},"b":2}`},
		{`[1e21, 1e-7, 0.000001, -0, 10.0, 123456789012345680000, 0.1, 1e300, 5e-324]`, `[1e+21,1e-7,0.000001,0,10,123456789012345680000,0.1,1e+300,5e-324]`},
		{`[333333333.33333329, 4.50, 2e-3, 1E30, 9007199254740993, -1.5]`, `[333333333.3333333,4.5,0.002,1e+30,9007199254740992,-1.5]`},
		{`"\u20ac$\u000F\nA'\u0042\u0022\u005c\\\"\/\b\f\r\t"`, `"€$\u000f\nA'B\"\\\\\"/\b\f\r\t"`},
		{`"<>&\u2028\u2029\u007f"`, "\"<>&\u2028\u2029\u007f\""},
		{`"\ud83d\ude00"`, "\"\U0001f600\""},
		{`"\ud83d x \ude00\ud83d"`, `"\ud83d x \ude00\ud83d"`},
		// By code units U+1F600 (d83d) comes before U+FB33; by code points after it.
		{`{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"":4}`, "{\"\":4,\"€\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
		{`[]`, `[]`},
		{` {} `, `{}`},
	} {
		v, err := Parse([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		got, err := Encode(nil, v)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.in, got, err, c.want)
		}
	}
}

func TestCanonicalOfValues(t *testing.T) {
	got, err := Marshal(map[string]any{"html": "<&>", "n": 1.0, "list": []int{}})
	if want := `{"html":"<&>","list":[],"n":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// Two readers of one text must see the same.
func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		``, `{`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `{a:1}`, `01`, `1.`, `.5`, `-`, `1e`, `+1`, `0x1`, `NaN`, `Infinity`, `1e400`,
		`"a`, "\"\n\"", `"\x"`, `"\u12"`, `"\u12g4"`, "\"\xff\"", "\"\xed\xa0\x80\"", `nul`, `true false`, `{"a":1}{}`,
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		if v, err := Parse([]byte(in)); err == nil {
			t.Errorf("%q was read as %v", in, v)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1e-7,"\ud83d",null,true]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := Parse(in)
		if err != nil {
			return
		}
		text, err := Encode(nil, v)
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", in, err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%q: its canonical form %q is not read: %v", in, text, err)
		}
		if second, err := Encode(nil, again); err != nil || string(second) != string(text) {
			t.Fatalf("%q: canonical form %q became %q, %v", in, text, second, err)
		}
	})
}
