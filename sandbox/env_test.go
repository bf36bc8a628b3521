package sandbox

import (
	"slices"
	"strings"
	"testing"
)

func TestEnv(t *testing.T) {
	host := []string{
		"PATH=/bin", "HOME=/h", "LANG=C", "LC_TIME=C", "TERM=x", "AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=s", "SSH_AUTH_SOCK=/s",
		"LD_PRELOAD=x", "HTTP_PROXY=x", "https_proxy=x", "NODE_OPTIONS=x", "ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c", "OPENAI_API_KEY=o",
		"BASH_FUNC_x%%=() { :; }", "=x", "nothing", "XDG_RUNTIME_DIR=/run/user/0", "DBUS_SESSION_BUS_ADDRESS=x", "DISPLAY=:0",
	}
	base := []string{"EGRESSD=1", "HOME=/h", "LANG=C", "LC_TIME=C", "PATH=/bin", "TERM=x"}
	for _, tt := range []struct {
		name  string
		argv  string
		named []string
		want  []string
	}{
		{"any program", "make", nil, nil},
		{"Claude Code", "/usr/local/bin/claude -p x", nil, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c"}},
		{"through npx", "npx -y @anthropic-ai/claude-code@latest", nil, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c"}},
		{"through env", "env A=b claude", nil, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c"}},
		{"through nice", "nice -n 10 claude", nil, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c"}},
		{"through timeout", "timeout 10m claude -p x", nil, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_X=c"}},
		{"codex", "codex exec x", nil, []string{"OPENAI_API_KEY=o"}},
		{"gemini", "gemini -p x", nil, []string{"SANDBOX=egressd"}},
		{"gemini, as the person says", "gemini -p x", []string{"SANDBOX="}, []string{"SANDBOX="}},
		{"an argument is no program", "sh -c claude", nil, nil},
		{"copied", "make", []string{"GITHUB_TOKEN"}, []string{"GITHUB_TOKEN=s"}},
		{"set", "make", []string{"A=b=c", "E="}, []string{"A=b=c", "E="}},
		{"a named value wins", "claude", []string{"ANTHROPIC_API_KEY=placeholder"}, []string{"ANTHROPIC_API_KEY=placeholder", "CLAUDE_CODE_X=c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Env(host, strings.Fields(tt.argv), tt.named)
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(base), tt.want...)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
	for _, bad := range []string{"", "=x", "A B=c", "1A=x", "NOT_SET", "A-B=x", "A=\x00"} {
		if got, err := Env(host, nil, []string{bad}); err == nil {
			t.Errorf("--env %q gives %q", bad, got)
		}
	}
}

func TestRemoteEnv(t *testing.T) {
	got, err := RemoteEnv([]string{"PATH=/bin", "HOME=/h", "LANG=C", "ANTHROPIC_API_KEY=a", "GOPATH=/g", "AWS_KEY=s"}, []string{"claude"}, []string{"X=1"})
	if err != nil || !slices.Equal(got, []string{"ANTHROPIC_API_KEY=a", "EGRESSD=1", "LANG=C", "X=1"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// No list may release what an agent does not own.
func TestNoForeignCredentials(t *testing.T) {
	for _, secret := range []string{
		"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG",
		"LD_PRELOAD", "LD_LIBRARY_PATH", "HTTP_PROXY", "all_proxy", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "GIT_SSH_COMMAND", "DOCKER_HOST",
	} {
		if matchesAny(passed, secret) {
			t.Errorf("%s passes to everybody", secret)
		}
		for _, a := range agents {
			if matchesAny(a.vars, secret) {
				t.Errorf("%s passes to %v", secret, a.names)
			}
		}
	}
}

func TestMissingAgentKeys(t *testing.T) {
	host := []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_OAUTH_TOKEN=t", "ANTHROPIC_MODEL=m", "OPENAI_API_KEY=", "GITHUB_TOKEN=g"}
	for _, tt := range []struct {
		argv []string
		env  []string
		want string
	}{
		{[]string{"sh", "-c", "claude -p 'hello'"}, nil, "claude: ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN"},
		{[]string{"bash", "-lc", "cd x && /usr/bin/claude"}, nil, "claude: ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN"},
		{[]string{"sudo", "-n", "claude"}, nil, "claude: ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN"},
		{[]string{"sh", "-c", "claude"}, []string{"ANTHROPIC_API_KEY=other"}, "claude: CLAUDE_CODE_OAUTH_TOKEN"},
		{[]string{"npx", "claude"}, []string{"ANTHROPIC_API_KEY=a", "CLAUDE_CODE_OAUTH_TOKEN=t"}, "claude:"},
		{[]string{"sh", "-c", "codex"}, nil, "codex:"}, // set to nothing
		{[]string{"git", "commit", "-m", "ask claude"}, nil, ":"},
		{[]string{"sh", "-c", "echo hello"}, nil, ":"},
		{nil, nil, ":"},
	} {
		name, keys := MissingAgentKeys(host, tt.argv, tt.env)
		if got := strings.TrimSpace(name + ": " + strings.Join(keys, " ")); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.argv, got, tt.want)
		}
	}
}
