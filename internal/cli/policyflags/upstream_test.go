package policyflags

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"egressd/policy"
)

func environ(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestReadEnviron(t *testing.T) {
	for _, tt := range []struct {
		vars   map[string]string
		nested bool
		url    string
		login  string
		err    string
	}{
		{vars: nil},
		{vars: map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, url: "http://proxy:3128"},
		{vars: map[string]string{"HTTP_PROXY": "a:1", "HTTPS_PROXY": "b:2", "https_proxy": "c:3"}, url: "http://c:3"},
		{vars: map[string]string{"all_proxy": "https://joe:p%3Aw@[fd00::1]"}, url: "https://joe@[fd00::1]:443", login: "joe:p:w"},
		{vars: map[string]string{"HTTPS_PROXY": "b:2", "NO_PROXY": "x,*"}},
		{vars: map[string]string{"HTTPS_PROXY": "http://127.0.0.1:3128"}, url: "http://127.0.0.1:3128"}, // px, cntlm
		{vars: map[string]string{"HTTPS_PROXY": "http://127.0.0.1:3128"}, nested: true},
		{vars: map[string]string{"HTTPS_PROXY": "http://proxy:3128"}, nested: true, url: "http://proxy:3128"},
		{vars: map[string]string{"ALL_PROXY": "socks5h://joe:hunter2@127.0.0.1:1080"}, err: "ALL_PROXY: an upstream proxy is http:// or https://"},
	} {
		e, err := ReadEnviron(environ(tt.vars), tt.nested)
		if e.Section.URL != tt.url || e.Login != tt.login || (err == nil) != (tt.err == "") {
			t.Errorf("%v: %+v %v", tt.vars, e, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%v", err)
		}
	}
}

// TestUpstreamPrecedence has flags before files, and files before the environment.
func TestUpstreamPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/p.yaml"
	if err := os.WriteFile(file, []byte("upstream_proxy: http://file:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		env  string
		want string // what is in force, or a part of the error
	}{
		{nil, "", ""},
		{nil, "http://env:1", "env:1"},
		{[]string{"--policy", file}, "http://env:1", "file:1"},
		{[]string{"--policy", file, "--upstream-proxy", "http://flag:1"}, "http://env:1", "flag:1"},
		{[]string{"--policy", file, "--upstream-proxy", "none"}, "http://env:1", ""},
		{[]string{"--upstream-resolve", "proxy"}, "http://env:1", "env:1"},
		{[]string{"--upstream-resolve", "proxy"}, "", "nothing names the upstream proxy"},
		{[]string{"--upstream-proxy", "http://joe:hunter2@flag:1"}, "", "--upstream-credentials"},
		{[]string{"--upstream-proxy", "none", "--upstream-resolve", "proxy"}, "", "nothing names the upstream proxy"},
	} {
		var f Flags
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		f.Register(fs)
		f.RegisterUpstream(fs)
		if err := fs.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.Environ, err = ReadEnviron(environ(map[string]string{"HTTPS_PROXY": tt.env}), false); err != nil {
			t.Fatal(err)
		}
		p, err := f.Load(os.ReadFile)
		got := p.Upstream().String()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) || strings.Contains(got, "hunter2") {
			t.Errorf("%q with %q: %q", tt.args, tt.env, got)
		}
	}
}

// TestUpstreamOfSession is the attack: a session names a proxy of its own, so that what
// the daemon lets out passes a machine of the session's choice.
func TestUpstreamOfSession(t *testing.T) {
	compile := func(url string) *policy.Policy {
		d := &policy.Document{}
		d.Upstream.URL = url
		p, err := policy.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if got := compile("http://evil:1").Under(compile("http://corp:1")).Upstream().String(); got != "corp:1" {
		t.Errorf("flows leave through %q", got)
	}
	if got := compile("http://evil:1").Under(compile("none")).Upstream(); got != nil {
		t.Errorf("flows leave through %s", got)
	}
}
