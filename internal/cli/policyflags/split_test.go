package policyflags

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"egressd/policy"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"a.example.com", []string{"a.example.com"}},
		{"a.example.com,b.example.com", []string{"a.example.com", "b.example.com"}},
		{"a.example.com, b.example.com,", []string{"a.example.com", "b.example.com"}},
		{"github.com:22,443", []string{"github.com:22,443"}},
		{"github.com:22,443,a.example.com", []string{"github.com:22,443", "a.example.com"}},
		{"a:1,2,8000-8100,b:3,4", []string{"a:1,2,8000-8100", "b:3,4"}},
		{"[2001:db8::1]:443,80,x", []string{"[2001:db8::1]:443,80", "x"}},
		{"203.0.113.0/24:5432,.example.com", []string{"203.0.113.0/24:5432", ".example.com"}},
		{"GET,POST https://h.example.com/**", []string{"GET,POST https://h.example.com/**"}},
		{"M-SEARCH,GET https://h/**", []string{"M-SEARCH,GET https://h/**"}},
		{"x,GET,POST https://h/**", []string{"x", "GET,POST https://h/**"}},
		{"GET https://h/a,b", []string{"GET https://h/a,b"}}, // a comma is legal in a path
		{"LOCALHOST,x", []string{"LOCALHOST", "x"}},
		{"22,x", []string{"22", "x"}}, // refused later: a port without a host
		{"", []string{""}},
		{",", []string{""}},
	} {
		if got := Split(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("Split(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// No comma list may allow more than its rules one by one: splitting again
// changes nothing.
func FuzzSplit(f *testing.F) {
	f.Add("github.com:22,443,GET,POST https://h/a,b")
	f.Fuzz(func(t *testing.T, s string) {
		rules := Split(s)
		if len(rules) == 0 {
			t.Fatal("no rule at all: an empty value must be an error later on")
		}
		for _, r := range rules {
			if again := Split(r); len(again) != 1 || again[0] != r {
				t.Fatalf("%q holds %q, which splits into %q", s, r, again)
			}
		}
	})
}

func TestLoad(t *testing.T) {
	files := map[string]string{"p.yaml": "allow:\n  - file.example.com\n"}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	f := Flags{Allow: List{"flag.example.com,two.example.com:22,23"}, Files: List{"p.yaml"}, HostPorts: []uint16{11434}}
	p, err := f.Load(read)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		port uint16
		want bool
	}{
		{"flag.example.com", 443, true},
		{"two.example.com", 23, true},
		{"two.example.com", 443, false},
		{"file.example.com", 443, true},
		{"host.internal", 11434, true},
		{"host.internal", 80, false},
		{"other.example.com", 443, false},
	} {
		h, err := policy.ParseHost(tt.host)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(policy.Request{Host: h, Port: tt.port}).Allowed(); got != tt.want {
			t.Errorf("%s:%d allowed is %v", tt.host, tt.port, got)
		}
	}
	servers := Flags{Upstreams: List{"192.0.2.1, tls://192.0.2.2"}}
	if p, err := servers.Load(read); err != nil || len(p.DNS().Upstreams) != 2 || p.DNS().Upstreams[1].Text != "tls://192.0.2.2" {
		t.Errorf("DNS servers: %+v, %v", p.DNS(), err)
	}
	if _, err := (&Flags{Files: List{"none"}}).Load(read); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Flags{Allow: List{"ok.example.com", "b..d"}}).Load(read); err == nil || !strings.Contains(err.Error(), "--allow #2") {
		t.Errorf("the error does not say which flag: %v", err)
	}
	var none Flags
	p, err = none.Load(read)
	if err != nil || p.Decide(policy.Request{}).Allowed() {
		t.Errorf("no flags: %v", err)
	}
}

func TestUnread(t *testing.T) {
	for err, want := range map[error]string{
		fs.ErrNotExist:        "policy: open p: file does not exist: check its name; launch --learn FILE -- PROGRAM writes one",
		fs.ErrPermission:      "policy: open p: permission denied: let this user read it (chmod, chown)",
		syscall.EISDIR:        "policy: open p: is a directory: name the file in it",
		errors.ErrUnsupported: "policy: open p: unsupported operation",
	} {
		got := Unread(&fs.PathError{Op: "open", Path: "p", Err: err})
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
