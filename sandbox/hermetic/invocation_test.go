package hermetic

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"egressd/sandbox"
)

func TestInvoked(t *testing.T) {
	for _, tt := range []struct {
		argv string // words split at |
		want invocation
	}{
		{"sh|-c|echo a", invocation{script: "echo a", name: "sh"}},
		{"/bin/bash|-c|x|name|a|b", invocation{script: "x", name: "name", args: []string{"a", "b"}}},
		{"sh|-ec|x", invocation{script: "x", name: "sh", options: []string{"-e"}}},
		{"bash|-c|-e|x|n", invocation{script: "x", name: "n", options: []string{"-e"}}}, // options may follow -c
		{"bash|-euo|pipefail|-c|x", invocation{script: "x", name: "bash", options: []string{"-e", "-u", "-o", "pipefail"}}},
		{"bash|-eo|pipefail|-uc|x", invocation{script: "x", name: "bash", options: []string{"-e", "-o", "pipefail", "-u"}}},
		{"bash|+e|-c|x", invocation{script: "x", name: "bash", options: []string{"+e"}}},
		{"bash|-O|globstar|-c|x", invocation{script: "x", name: "bash", options: []string{"-O", "globstar"}}},
		{"bash|-lc|x", invocation{script: "x", name: "bash"}},
		{"bash|--norc|--noprofile|-c|x", invocation{script: "x", name: "bash"}},
		{"sh|-c|--|-x", invocation{script: "-x", name: "sh"}},
		{"sh|-c|--|x|-a|--", invocation{script: "x", name: "-a", args: []string{"--"}}},
		{"sh|-c|", invocation{name: "sh"}},
		{"sh", invocation{name: "sh", stdin: true}},
		{"sh|-s|a|b", invocation{name: "sh", stdin: true, args: []string{"a", "b"}}},
		{"bash|-es|--|-a", invocation{name: "bash", stdin: true, options: []string{"-e"}, args: []string{"-a"}}},
		{"sh|-", invocation{name: "sh", stdin: true}},
	} {
		got, err := invoked(sandbox.Spec{Argv: strings.Split(tt.argv, "|")})
		if err != nil || got.script != tt.want.script || got.name != tt.want.name || got.stdin != tt.want.stdin ||
			!slices.Equal(got.args, tt.want.args) || !slices.Equal(got.options, tt.want.options) {
			t.Errorf("%s: %+v, %v; want %+v", tt.argv, got, err, tt.want)
		}
	}
	for _, shell := range []string{"", "sh", "bash"} {
		if got, err := invoked(sandbox.Spec{Script: "x", Shell: shell}); err != nil || got.script != "x" || got.stdin {
			t.Errorf("shell %q: %+v, %v", shell, got, err)
		}
	}
}

// What is no script is refused before anything runs, with what to type.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		spec sandbox.Spec
		says string
	}{
		{sandbox.Spec{Argv: []string{"claude", "-p", "x"}}, "agent"},
		{sandbox.Spec{Argv: []string{"npx", "@openai/codex"}}, "agent"},
		{sandbox.Spec{Argv: []string{"python3", "x.py"}}, "runs no program"},
		{sandbox.Spec{Argv: []string{"env", "sh", "-c", "x"}}, "runs no program"},
		{sandbox.Spec{Argv: []string{"./script.sh"}}, "--script FILE"},
		{sandbox.Spec{Argv: []string{"zsh", "-c", "x"}}, "runs no program"},
		{sandbox.Spec{Argv: []string{"bash", "script.sh"}}, "--script script.sh"},
		{sandbox.Spec{Argv: []string{"bash", "-c"}}, "requires an argument"},
		{sandbox.Spec{Argv: []string{"bash", "-o"}}, "requires an argument"},
		{sandbox.Spec{Argv: []string{"bash", "-ic", "x"}}, "no such option"},
		{sandbox.Spec{Argv: []string{"bash", "--rcfile", "x"}}, "no such option"},
		{sandbox.Spec{Argv: []string{"sh"}, Script: "x"}, "not both"},
		{sandbox.Spec{}, "nothing to run"},
		{sandbox.Spec{Script: "x", Shell: "fish"}, "fish"},
	} {
		_, err := invoked(tt.spec)
		var no *sandbox.CapabilityError
		if !errors.As(err, &no) || no.Isolation != "hermetic" || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v", tt.spec, err)
		}
		if len(tt.spec.Argv) > 0 && tt.spec.Script == "" && !strings.Contains(err.Error(), "process tier") {
			t.Errorf("%+v: %v: it does not say what to type", tt.spec, err)
		}
	}
}

func TestEnv(t *testing.T) {
	host := []string{"HOME=/root", "PATH=/x", "USER=root", "LANG=C", "LC_TIME=C", "TERM=x", "GOPATH=/root/go", "PWD=/x", "TZ=UTC", "SECRET=v"}
	for _, tt := range []struct {
		name  string
		named []string
		want  []string
	}{
		{"nothing asked for", nil, []string{"HOME=/", "LANG=C", "LC_TIME=C", "LOGNAME=user", "PATH=/usr/bin:/bin", "SHELL=/bin/bash", "TERM=x", "TZ=UTC", "USER=user"}},
		{"asked for wins", []string{"HOME=/root", "SECRET", "GOPATH"}, []string{"GOPATH=/root/go", "HOME=/root", "LANG=C", "LC_TIME=C", "LOGNAME=user", "PATH=/usr/bin:/bin", "SECRET=v", "SHELL=/bin/bash", "TERM=x", "TZ=UTC", "USER=user"}},
	} {
		if got := Env(host, tt.named); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
	if got := new(Backend).complete([]string{"HOME=/x"}); !slices.Contains(got, "HOME=/x") || slices.Contains(got, "HOME=/") || !slices.Contains(got, "PATH=/usr/bin:/bin") {
		t.Errorf("%q", got)
	}
}
