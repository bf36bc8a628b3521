package files

import "testing"

// TestKeptFromReading names what people call a credential, kind by kind: each is
// hidden without a word from anybody, and for whoever makes HOME writable.
func TestKeptFromReading(t *testing.T) {
	for kind, paths := range map[string][]string{
		"ssh":              {"~/.ssh/id_rsa", "~/.ssh/id_ed25519", "~/.ssh/authorized_keys", "~/.ssh/agent.sock"},
		"clouds":           {"~/.aws/credentials", "~/.aws/sso/cache/x.json", "~/.config/gcloud/application_default_credentials.json", "~/.azure/msal_token_cache.json", "~/.oci/config", "~/.config/doctl/config.yaml", "~/.config/hcloud/cli.toml"},
		"containers":       {"~/.kube/config", "~/.docker/config.json", "~/.config/containers/auth.json", "/etc/kubernetes/admin.conf"},
		"service accounts": {"/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets/x", "/var/lib/kubelet/pki/x"},
		"git":              {"~/.netrc", "~/.git-credentials", "~/.config/git/credentials", "~/.config/gh/hosts.yml", "~/.config/glab-cli/config.yml", "~/.config/tea/config.yml", "~/.subversion/auth/svn.simple/x"},
		"keyrings":         {"~/.gnupg/private-keys-v1.d/x", "~/.local/share/keyrings/login.keyring", "~/.local/share/kwalletd/kdewallet.kwl", "~/.password-store/x.gpg", "~/.pki/nssdb/key4.db", "~/.Xauthority"},
		"browsers": {
			"~/.mozilla/firefox/p/logins.json", "~/.config/google-chrome/Default/Cookies", "~/.config/google-chrome-beta/Default/Cookies", "~/.config/chromium/Default/Cookies",
			"~/.config/BraveSoftware/Brave-Browser/x", "~/.config/microsoft-edge/x", "~/.config/vivaldi/x", "~/.librewolf/p/logins.json", "~/.zen/p/logins.json",
			"~/snap/firefox/common/.mozilla/firefox/p/logins.json", "~/snap/chromium/common/x", "~/.var/app/org.mozilla.firefox/.mozilla/x", "~/.thunderbird/x",
		},
		"registries": {
			"~/.npmrc", "~/.yarnrc.yml", "~/.pypirc", "~/.gem/credentials", "~/.cargo/credentials.toml", "~/.config/composer/auth.json", "~/.composer/auth.json", "~/.m2/settings.xml",
			"~/.gradle/gradle.properties", "~/.sbt/.credentials", "~/.hex/hex.config", "~/.huggingface/token", "~/.cache/huggingface/token", "~/.kaggle/kaggle.json",
		},
		"histories": {
			"~/.bash_history", "~/.sh_history", "~/.ash_history", "~/.zsh_history", "~/.zhistory", "~/.histfile", "~/.local/state/zsh/history", "~/.local/state/bash/history", "~/.local/share/fish/fish_history", "~/.local/share/atuin/history.db",
			"~/.config/nushell/history.txt", "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.sqlite_history", "~/.rediscli_history", "~/.irb_history", "~/.lesshst", "~/.viminfo",
		},
		"the machine": {"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d/x", "/etc/ssh/ssh_host_ed25519_key", "/etc/krb5.keytab"},
		"launch":      {"~/.local/state/egressd/sandboxes/x"},
	} {
		for _, h := range []Home{HomeUnset, HomeReadWrite} {
			g := gateOf(t, Section{Home: h}, Place{})
			for _, p := range paths {
				if d := g.Decide(atHome(p)); d.Access != Hidden || d.Reason != Credential {
					t.Errorf("%s: %s with home %q: %v, %v", kind, p, h, d.Access, d.Reason)
				}
			}
		}
	}
}

// TestKeptFromWriting does the same for what runs later outside.
func TestKeptFromWriting(t *testing.T) {
	g := gateOf(t, Section{Home: HomeReadWrite}, Place{})
	for _, p := range []string{
		"~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.profile", "~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.config/fish/config.fish", "~/.config/zsh/.zshrc",
		"~/.oh-my-zsh/oh-my-zsh.sh", "~/.inputrc", "~/.xsession", "~/.xsessionrc", "~/.gitconfig", "~/.config/git/config", "~/.config/systemd/user/x.service", "~/.config/autostart/x.desktop",
		"~/.config/environment.d/x.conf", "~/.config/plasma-workspace/env/x.sh", "~/.local/bin/launch", "~/bin/x", "~/.vscode/extensions/x", "~/.tmux.conf", "~/.config/egressd/egress.yaml",
		work + "/.git/hooks/pre-commit", work + "/.git/config", work + "/.git/config.worktree", work + "/.git/info/attributes", work + "/.git/commondir", work + "/.gitmodules",
		work + "/.git/modules/a/config", work + "/.git/modules/libs/a/config", work + "/.git/modules/libs/a/hooks/x", work + "/.git/modules/a/modules/b/info/attributes",
		work + "/.git/modules/a/commondir", work + "/.git/modules/a/config.worktree", work + "/.git/worktrees/a/config.worktree",
		work + "/.vscode/tasks.json", work + "/.idea/x", work + "/.envrc", work + "/.mcp.json", work + "/.egress.yaml",
		work + "/.claude/settings.json", work + "/.claude/settings.local.json", work + "/.claude/commands/x", work + "/.claude/hooks/x", work + "/.claude/agents/x", work + "/a/b/.envrc",
	} {
		if d := g.Decide(atHome(p)); d.Access != ReadOnly || d.Reason != RunsLater {
			t.Errorf("%s: %v, %v", p, d.Access, d.Reason)
		}
	}
}

func atHome(p string) string {
	if len(p) > 1 && p[:2] == "~/" {
		return home + p[1:]
	}
	return p
}
