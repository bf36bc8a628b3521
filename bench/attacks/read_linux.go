package main

import (
	"os"
	"path/filepath"
	"strings"
)

// decoys are files of the home directory that hold a credential.
func decoys() []string {
	return []string{
		".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/application_default_credentials.json",
		".azure/msal_token_cache.json", ".kube/config", ".docker/config.json", ".netrc", ".git-credentials",
		".config/gh/hosts.yml", ".npmrc", ".pypirc", ".cargo/credentials.toml", ".gnupg/private-keys-v1.d/A.key",
		".local/share/keyrings/login.keyring", ".mozilla/firefox/p/logins.json",
		".config/google-chrome/Default/Login Data", ".bash_history", ".claude/.credentials.json", ".codex/auth.json",
		"snap/firefox/common/.mozilla/firefox/p/logins.json",
	}
}

func cat(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString("cat '{HOME}/" + n + "'\n")
	}
	return b.String()
}

func reads() []attack {
	const group = "files read"
	list := []attack{
		{name: "ssh key", script: cat(".ssh/id_ed25519"), tell: ".ssh"},
		{name: "cloud logins: aws, gcloud, azure, kube", script: cat(decoys()[1:5]...), tell: ".aws"},
		{name: "docker login", script: cat(".docker/config.json"), tell: ".docker"},
		{name: "netrc, git-credentials, gh", script: cat(".netrc", ".git-credentials", ".config/gh/hosts.yml"), tell: ".netrc"},
		{name: "registry tokens: npm, pypi, cargo", script: cat(".npmrc", ".pypirc", ".cargo/credentials.toml"), tell: ".npmrc"},
		{name: "gnupg, keyrings", script: cat(".gnupg/private-keys-v1.d/A.key", ".local/share/keyrings/login.keyring")},
		{name: "browser profiles", script: cat(".mozilla/firefox/p/logins.json", ".config/google-chrome/Default/Login Data", "snap/firefox/common/.mozilla/firefox/p/logins.json")},
		{name: "shell history", script: cat(".bash_history"), tell: ".bash_history"},
		{name: "other agents' logins", script: cat(".claude/.credentials.json", ".codex/auth.json"), tell: ".credentials.json"},
		{
			name: "/etc/shadow", needs: rooted, script: "cat /etc/shadow",
			setup: func(a *attempt) error {
				return appendTo("/etc/shadow", "decoy:"+a.canary+":1::::::\n") // an overlay: see lab
			},
			tell: "/etc/shadow",
		},
		{name: "through a link in the workspace", script: "ln -s {HOME}/.ssh/id_ed25519 key; cat key; ln -s {HOME} h; cat h/.ssh/id_ed25519"},
		{name: "through /proc/*/root and /proc/*/cwd", script: "for p in /proc/[0-9]* /proc/self; do cat $p/root{HOME}/.ssh/id_ed25519 $p/cwd/../.ssh/id_ed25519; done"},
		{name: "through a new hard link", script: "ln {HOME}/.ssh/id_ed25519 {WS}/key; cat {WS}/key"},
		{name: "unmounting the cover, in namespaces of its own", script: "{A} uncover read {HOME}/.ssh {HOME}/.ssh/id_ed25519"},
		{
			name: "a second hard link that was there", script: "cat {WS}/second",
			setup: func(a *attempt) error {
				return os.Link(filepath.Join(a.home, ".ssh/id_ed25519"), filepath.Join(a.ws, "second"))
			},
			documented: "A hidden file that has a second hard link elsewhere is read there",
		},
		{
			name: ".env of the workspace", script: "cat {WS}/.env",
			setup:      func(a *attempt) error { return put(a.ws, ".env", a.canary) },
			documented: "`.env` in the working directory",
		},
		{
			name: "another project of the person", script: cat("other/source"),
			setup:      func(a *attempt) error { return put(a.home, "other/source", a.canary) },
			documented: "What is not a credential by",
		},
	}
	for i := range list {
		list[i].group, list[i].check = group, leaks
		if list[i].tell != "" {
			list[i].script = "sleep 1.2\n" + list[i].script // in the first second launch does not tell of reads
		}
	}
	return list
}
