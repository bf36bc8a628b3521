package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// policyRow is a policy text and whether it loads.
type policyRow struct {
	name string
	yaml string
	ok   bool
	says []string // must stand in the message
}

func allowing(rule string) string { return "allow:\n  - '" + rule + "'\n" }
func denying(rule string) string  { return "deny:\n  - '" + rule + "'\n" }

var policyRows = []policyRow{
	{name: "empty", yaml: "", ok: true},
	{name: "a comment", yaml: "# nothing\n", ok: true},
	{name: "a name", yaml: allowing("api.example.com"), ok: true},
	{name: "a wildcard", yaml: allowing("*.example.com"), ok: true},
	{name: "a dot rule", yaml: allowing(".example.com"), ok: true},
	{name: "ports", yaml: allowing("github.com:22,443"), ok: true},
	{name: "a range of ports", yaml: allowing("example.com:8000-8100"), ok: true},
	{name: "any port", yaml: allowing("example.com:*"), ok: true},
	{name: "an address", yaml: allowing("203.0.113.7:5432"), ok: true},
	{name: "a network", yaml: allowing("203.0.113.0/24:5432"), ok: true},
	{name: "a private network", yaml: allowing("10.0.0.0/8:5432"), ok: true},
	{name: "an IPv6 address with a port", yaml: allowing("[2001:db8::1]:443"), ok: true},
	{name: "an IPv6 network", yaml: allowing("2001:db8::/32"), ok: true},
	{name: "raw", yaml: allowing("raw:db.example.com:443"), ok: true},
	{name: "a path rule", yaml: allowing("GET https://api.example.com/repos/**"), ok: true},
	{name: "capitals and a trailing dot", yaml: allowing("API.Example.com."), ok: true},
	{name: "an IDN", yaml: allowing("b\u00fccher.example.com"), ok: true},
	{name: "a name of one label", yaml: allowing("intranet"), ok: true},
	{name: "every key", yaml: "allow: [a.example.com]\ndeny: [b.example.com]\npresets: [npm]\nhosts: {a.example.com: 10.0.0.1}\ndns: {mode: synthetic}\nlimits: {connections: 10}\naudit: false\n", ok: true},
	{name: "a star", yaml: allowing("*")},
	{name: "a whole suffix", yaml: allowing("*.com"), says: []string{"suffix"}},
	{name: "a whole suffix of two labels", yaml: allowing("*.co.uk"), says: []string{"suffix"}},
	{name: "a dot rule over a suffix", yaml: allowing(".com")},
	{name: "a star inside a label", yaml: allowing("a*b.com")},
	{name: "a star in the middle", yaml: allowing("a.*.example.com")},
	{name: "a star at the end", yaml: allowing("example.*")},
	{name: "two stars", yaml: allowing("*.*.example.com")},
	{name: "a star without a dot", yaml: allowing("*example.com")},
	{name: "a scheme", yaml: allowing("https://api.example.com")},
	{name: "userinfo", yaml: allowing("user@example.com")},
	{name: "a path without a method", yaml: allowing("example.com/path")},
	{name: "a space", yaml: allowing("example.com evil.com")},
	{name: "an empty label", yaml: allowing("a..example.com")},
	{name: "a label of 64", yaml: allowing(strings.Repeat("a", 64) + ".example.com")},
	{name: "an underscore domain is a name", yaml: allowing("_dmarc.example.com"), ok: true},
	{name: "a backslash", yaml: allowing("example.com\\")},
	{name: "a semicolon", yaml: allowing("example.com;evil.com")},
	{name: "a hash", yaml: allowing("example.com#x")},
	{name: "a quote", yaml: "allow: [\"example.com\\\"\"]\n"},
	{name: "a NUL", yaml: "allow: [\"example.com\\0\"]\n"},
	{name: "a line feed", yaml: "allow: [\"example.com\\nevil.com\"]\n"},
	{name: "port 0", yaml: allowing("example.com:0")},
	{name: "port 65536", yaml: allowing("example.com:65536")},
	{name: "a leading zero", yaml: allowing("example.com:0443")},
	{name: "a signed port", yaml: allowing("example.com:+443")},
	{name: "a negative port", yaml: allowing("example.com:-1")},
	{name: "a named port", yaml: allowing("example.com:https")},
	{name: "an empty port", yaml: allowing("example.com:")},
	{name: "a range backwards", yaml: allowing("example.com:90-80")},
	{name: "a range without an end", yaml: allowing("example.com:80-")},
	{name: "a trailing comma", yaml: allowing("example.com:80,")},
	{name: "host bits", yaml: allowing("10.0.0.1/8"), says: []string{"10.0.0.0/8"}},
	{name: "host bits, IPv6", yaml: allowing("2001:db8::1/32")},
	{name: "a prefix too long", yaml: allowing("10.0.0.0/33")},
	{name: "octal", yaml: allowing("010.0.0.1")},
	{name: "one number", yaml: allowing("2130706433")},
	{name: "two parts", yaml: allowing("127.1")},
	{name: "hex", yaml: allowing("0x7f.0.0.1")},
	{name: "a zone", yaml: allowing("fe80::1%eth0")},
	{name: "a bracketed name", yaml: allowing("[example.com]:443")},
	{name: "raw without a port", yaml: allowing("raw:example.com")},
	{name: "raw twice", yaml: allowing("raw:raw:example.com:443")},
	{name: "a path rule over http", yaml: allowing("GET http://example.com/**")},
	{name: "a path rule without a path", yaml: allowing("GET https://example.com")},
	{name: "a path rule with a query", yaml: allowing("GET https://example.com/a?b=c")},
	{name: "a path rule with a dot segment", yaml: allowing("GET https://example.com/a/../b")},
	{name: "a method in small letters", yaml: allowing("get https://example.com/a")},
	{name: "an empty rule", yaml: allowing("")},
	{name: "denying with a star inside", yaml: denying("a*b.com")},
	{name: "denying a whole suffix", yaml: denying("*.zip"), says: []string{"suffix"}},
	{name: "an allow that a deny covers whole", yaml: "allow: [a.example.com]\ndeny: ['.example.com']\n"},
	{name: "an unknown key", yaml: "alow: [a.example.com]\n", says: []string{":1:1", "alow"}},
	{name: "a duplicate key", yaml: "allow: [a.example.com]\nallow: [b.example.com]\n"},
	{name: "allow as text", yaml: "allow: a.example.com\n"},
	{name: "allow as a map", yaml: "allow: {a.example.com: true}\n"},
	{name: "a number as a rule", yaml: "allow: [443]\n"},
	{name: "null as a rule", yaml: "allow: [null]\n"},
	{name: "an unknown preset", yaml: "presets: [no-such-preset]\n"},
	{name: "an unknown dns mode", yaml: "dns: {mode: magic}\n"},
	{name: "an unknown dns key", yaml: "dns: {servers: []}\n"},
	{name: "a bad upstream", yaml: "dns: {upstreams: ['https://x/y z']}\n"},
	{name: "a hosts entry without an address", yaml: "hosts: {a.example.com: b.example.com}\n"},
	{name: "a hosts entry in octal", yaml: "hosts: {a.example.com: 010.0.0.1}\n"},
	{name: "a hosts entry for a wildcard", yaml: "hosts: {'*.example.com': 10.0.0.1}\n"},
	{name: "a negative limit", yaml: "limits: {connections: -1}\n"},
	{name: "a limit in words", yaml: "limits: {connections: many}\n"},
	{name: "audit in words", yaml: "audit: perhaps\n"},
	{name: "an anchor", yaml: "allow: &a [a.example.com]\ndeny: *a\n"},
	{name: "two documents", yaml: "allow: [a.example.com]\n---\nallow: [b.example.com]\n"},
	{name: "tabs", yaml: "allow:\n\t- a.example.com\n"},
	{name: "a list at the top", yaml: "- a.example.com\n"},
	{name: "not UTF-8", yaml: "allow: ['\xff\xfe.example.com']\n"},
	{name: "the third line", yaml: "# one\nallow:\n  - a..b\n", says: []string{":3:"}},
}

// TestPolicyFiles gives every text to launch check: a text that does not load
// is told with its place, and the same text stops a run before anything runs.
func TestPolicyFiles(t *testing.T) {
	dir := t.TempDir()
	for i, r := range policyRows {
		path := filepath.Join(dir, "policy-"+strconv.Itoa(i)+".yaml")
		if err := os.WriteFile(path, []byte(r.yaml), 0o644); err != nil {
			t.Fatal(err)
		}
		out, code := command(t, dir, "check", path)
		if ok := code == 0; ok != r.ok {
			t.Errorf("%s: exit code %d, want it to load: %v\n%s\n%s", r.name, code, r.ok, r.yaml, out)
			continue
		}
		if !r.ok && code != 2 {
			t.Errorf("%s: exit code %d, want 2", r.name, code)
		}
		for _, word := range append(r.says, placeOf(r, path)...) {
			if !strings.Contains(out, word) {
				t.Errorf("%s: the message lacks %q: %s", r.name, word, out)
			}
		}
	}
	ran := filepath.Join(dir, "ran")
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("alow: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, dir, "--policy", bad, "--", "touch", ran); code != 125 {
		t.Errorf("a run with a bad policy: exit code %d, want 125: %s", code, out)
	}
	if exists(ran) {
		t.Error("a run with a bad policy ran")
	}
}

// placeOf is what every message about a file holds: the file.
func placeOf(r policyRow, path string) []string {
	if r.ok {
		return nil
	}
	return []string{path + ":"}
}

// command runs launch outside the world and reports its output and exit code.
func command(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), env.launch, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestExplainAgrees: launch explain gives each row of the verdict tables the
// answer that the doors give.
func TestExplainAgrees(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for _, g := range verdictGroups() {
		for _, r := range g.rows {
			if r.want == cut || r.asks || r.host == "" || strings.ContainsRune(r.host, 0) {
				continue // decided by what a client says or a resolver answers
			}
			if r.want == allow && r.say.Kind == "hello" && len(r.say.Hello.Names) == 0 && net.ParseIP(r.host) == nil {
				continue
			}
			if strings.ContainsFunc(r.host, func(c rune) bool { return c > 0x7f }) {
				continue // a person may type what no client may send
			}
			target := net.JoinHostPort(r.host, strconv.Itoa(r.port))
			if strings.HasPrefix(r.host, "[") || r.want == bad {
				target = r.host + ":" + strconv.Itoa(r.port)
			}
			n++
			out, code := command(t, dir, append(append([]string{"explain"}, g.flags...), "--", target)...)
			switch {
			case r.want == allow && code != 0, r.want != allow && code == 0:
				t.Errorf("%s: launch explain %q exits with %d: %s", r.name, target, code, out)
			case r.want == deny && r.reason != "" && !strings.Contains(out, r.reason):
				t.Errorf("%s: launch explain %q does not say %s: %s", r.name, target, r.reason, out)
			}
		}
	}
	t.Logf("%d rows explained", n)
}
