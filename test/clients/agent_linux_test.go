//go:build system

package clients

import (
	"regexp"
	"slices"
	"testing"
)

// The coding agents against scripted models: start, stream, use a tool, end.
func TestAgents(t *testing.T) {
	for _, a := range []struct {
		name  string
		needs []string
		key   string // variable of the user's shell, which launch must pass to this agent unasked
		env   []string
		rules []string
		argv  []string
	}{
		{
			name: "claude code", needs: []string{"claude", "curl"}, key: "ANTHROPIC_API_KEY=sk-ant-test",
			env: []string{"NODE_EXTRA_CA_CERTS={ca}"}, rules: []string{claudeHost},
			argv: []string{"claude", "-p", "run the probe", "--allowedTools", "Bash"},
		},
		{
			// Codex runs its tools in a sandbox of its own, inside ours; that one has no
			// network unless it is told so.
			name: "codex", needs: []string{"codex", "curl"}, key: "CODEX_API_KEY=sk-test",
			env: []string{"CODEX_CA_CERTIFICATE={ca}"}, rules: []string{openaiHost, chatgptHost},
			argv: []string{"codex", "exec", "--model", "scripted", "--sandbox", "workspace-write", "-c", "sandbox_workspace_write.network_access=true", "--skip-git-repo-check", "run the probe"},
		},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			asEach(t, func(t *testing.T, who person) {
				need(t, who, a.needs...)
				for mode, captured := range map[string]bool{"proxy variables": false, "captured": true} {
					t.Run(mode, func(t *testing.T) {
						flags := []string{"--allow", webHost, "--env", "CURL_CA_BUNDLE=" + env.world.ca.file}
						for _, r := range a.rules {
							flags = append(flags, "--allow", r)
						}
						for _, v := range a.env {
							flags = append(flags, "--env", fillCA(v))
						}
						if captured {
							// launch knows agents by the program's name, and here that is env.
							flags = append(flags, "--env", a.key, "--nested")
						}
						argv := a.argv
						if who.uid == 0 {
							// The kernel lets nobody without CAP_SETFCAP map uid 0 into a
							// namespace: as root, Codex can't sandbox its tools a second time.
							argv = slices.Clone(argv)
							if i := slices.Index(argv, "workspace-write"); i >= 0 {
								argv[i] = "danger-full-access"
							}
						}
						s := session{who: who, flags: flags, argv: argv, captured: captured, outer: []string{a.key}}
						checkAgent(t, s, s.run(t))
					})
				}
			})
		})
	}
}

func checkAgent(t *testing.T, s session, e ended) {
	t.Helper()
	for _, want := range []string{
		`TOOL RESULT:`,
		`denied=(6|56)`, // curl: no such name; the proxy refused
		`hello from the origin`,
		`allowed=0`,
	} {
		if !regexp.MustCompile(want).MatchString(e.all()) {
			t.Errorf("no /%s/ in what the agent said", want)
		}
	}
	if e.code != 0 {
		t.Errorf("exit code %d", e.code)
	}
	checkBlocked(t, s, e)
	if t.Failed() {
		t.Logf("%v after %v\nstdout: %.3000s\nstderr: %.3000s", s.argv, e.took, e.stdout, e.stderr)
	}
}
