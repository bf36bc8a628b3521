package main

import (
	"os"
	"path/filepath"
)

const plant = "echo '{MARK}' >> "

// laters write files that are there and that run, or are obeyed, outside later.
func laters() []attack {
	const group = "files that run later, existing"
	type row struct{ name, path, tell, documented string }
	var list []attack
	for _, r := range []row{
		{".git/hooks", "{WS}/.git/hooks/post-checkout", "hooks", ""},
		{".git/config", "{WS}/.git/config", ".git/config", ""},
		{".git/info/attributes", "{WS}/.git/info/attributes", "attributes", ""},
		{"a submodule's hooks and configuration", "{WS}/.git/modules/sub/config", ".git/modules", ""},
		{"a submodule's in a directory", "{WS}/.git/modules/libs/deep/config", ".git/modules", ""},
		{"a nested repository's configuration", "{WS}/a/b/.git/config", "a/b/.git", ""},
		{".vscode/tasks.json", "{WS}/.vscode/tasks.json", ".vscode", ""},
		{".envrc", "{WS}/.envrc", ".envrc", ""},
		{".mcp.json", "{WS}/.mcp.json", ".mcp.json", ""},
		{".claude/settings.json of the workspace", "{WS}/.claude/settings.json", ".claude", ""},
		{"~/.bashrc", "{HOME}/.bashrc", ".bashrc", ""},
		{"~/.gitconfig", "{HOME}/.gitconfig", ".gitconfig", ""},
		{"~/.ssh/config, authorized_keys", "{HOME}/.ssh/authorized_keys", "", ""},
		{"~/.local/bin", "{HOME}/.local/bin/tool", ".local/bin", ""},
		{"~/.claude/settings.json", "{HOME}/.claude/settings.json", "settings.json", ""},
		{"Makefile, package.json of the workspace", "{WS}/Makefile", "", "Makefiles, build scripts, `package.json`, source"},
	} {
		list = append(list, attack{
			group: group, name: r.name, script: plant + r.path, check: plants(r.path), tell: r.tell, documented: r.documented,
		})
	}
	return list
}

// missing make such files where there are none. What is left of them counts, a second later and after the end.
func missing() []attack {
	const group = "files that run later, not there yet"
	type row struct{ name, script, path, tell, documented string }
	var list []attack
	for _, r := range []row{
		{"a hook", "printf '#!/bin/sh\\n#{MARK}\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", "{WS}/.git/hooks/pre-commit", "hooks", ""},
		{".git/config.worktree", plant + ".git/config.worktree", "{WS}/.git/config.worktree", "config.worktree", ""},
		{".idea", "mkdir .idea; " + plant + ".idea/workspace.xml", "{WS}/.idea/workspace.xml", ".idea", ""},
		{".envrc of a directory below", "mkdir -p a/b; " + plant + "a/b/.envrc", "{WS}/a/b/.envrc", ".envrc", ""},
		{".vscode in a new directory", "mkdir -p new/.vscode; " + plant + "new/.vscode/tasks.json", "{WS}/new/.vscode/tasks.json", ".vscode", ""},
		{".claude/hooks", "mkdir -p .claude/hooks; " + plant + ".claude/hooks/pre", "{WS}/.claude/hooks/pre", ".claude", ""},
		{"an agent's: .claude/settings.local.json", plant + ".claude/settings.local.json", "{WS}/.claude/settings.local.json", "settings.local", ""},
		{
			"a new repository with core.fsmonitor",
			"mkdir -p evil/.git/objects evil/.git/refs; echo ref: refs/heads/main > evil/.git/HEAD; printf '[core]\\n\\tfsmonitor = echo {MARK}\\n' > evil/.git/config",
			"{WS}/evil/.git/config", "evil", "",
		},
		{"~/.bash_profile", plant + "{HOME}/.bash_profile", "{HOME}/.bash_profile", "", ""},
		{"~/.config/autostart, systemd/user, environment.d", "mkdir -p {HOME}/.config/autostart; " + plant + "{HOME}/.config/autostart/x.desktop", "{HOME}/.config/autostart/x.desktop", "", ""},
		{
			"six directories down", "mkdir -p 1/2/3/4/5/6/.vscode; " + plant + "1/2/3/4/5/6/.vscode/tasks.json",
			"{WS}/1/2/3/4/5/6/.vscode/tasks.json", "", "What lies deeper than 4 levels below",
		},
		{
			"a directory laid out as a bare repository",
			"mkdir -p bare/objects bare/refs; echo ref: refs/heads/main > bare/HEAD; printf '[core]\\n\\tfsmonitor = echo {MARK}\\n' > bare/config",
			"{WS}/bare/config", "bare/config", "",
		},
	} {
		list = append(list, attack{
			group: group, name: r.name, script: r.script + "; sleep 0.5", check: plants(r.path), tell: r.tell, documented: r.documented,
		})
	}
	return append(list, attack{
		group: group, name: ".envrc of a directory below, until it is moved",
		script: "i=0; while [ $i -lt 40 ]; do echo '{MARK}' > a/b/.envrc; i=$((i+1)); done; sleep 0.3",
		setup:  watchName, check: seen, documented: "Between the making of one and its moving are up to 20 ms",
	})
}

// watchName looks at a name as fast as it can, as a program that runs meanwhile would.
func watchName(a *attempt) error {
	a.background(func(stop <-chan struct{}) {
		there := plants("{WS}/a/b/.envrc")
		for !a.outside {
			select {
			case <-stop:
				return
			default:
				a.outside = there(a)
			}
		}
	})
	return nil
}

// tricks reach protected files by other names.
func tricks() []attack {
	const group = "renames, links"
	own := func(path string) func(*attempt) error {
		return func(a *attempt) error { return os.Symlink(a.replace("{WS}/editor"), a.replace(path)) }
	}
	list := []attack{
		{name: ".git renamed, another in its place", script: "mv .git old && cp -r old .git && printf '[core]\\n\\tfsmonitor = echo {MARK}\\n' >> .git/config; sleep 0.5", check: plants("{WS}/.git/config")},
		{name: ".git/hooks renamed, another in its place", script: "mv .git/hooks .git/h && mkdir .git/hooks && " + plant + ".git/hooks/pre-commit; sleep 0.5", check: plants("{WS}/.git/hooks/pre-commit")},
		{name: ".git/config replaced by rename", script: "printf '[core]\\n\\tfsmonitor = echo {MARK}\\n' > c; mv -f c .git/config; sleep 0.5", check: plants("{WS}/.git/config")},
		{name: "the directory above .vscode renamed", script: "mv a a2 && mkdir -p a/b/.git && " + plant + "a/b/.git/config; sleep 0.5", check: plants("{WS}/a/b/.git/config")},
		{name: "~/.bashrc through a link", script: "ln -s {HOME}/.bashrc b; " + plant + "b", check: plants("{HOME}/.bashrc")},
		{name: "~/.bashrc through a hard link", script: "ln {HOME}/.bashrc {WS}/b; " + plant + "{WS}/b", check: plants("{HOME}/.bashrc")},
		{name: "what a link .idea leads to", setup: own("{WS}/.idea"), script: plant + "editor/workspace.xml", check: plants("{WS}/.idea/workspace.xml")},
		{name: "a link .idea pointed elsewhere", setup: own("{WS}/.idea"), script: "mkdir e2; " + plant + "e2/workspace.xml; rm -f .idea; ln -s e2 .idea; sleep 0.5", check: plants("{WS}/.idea/workspace.xml")},
		{name: ".git/config through /proc/self/fd", script: "exec 3< .git/config; " + plant + "/proc/self/fd/3", check: plants("{WS}/.git/config")},
		{name: "unmounting the cover, then writing", script: "{A} uncover {MARK} {WS}/.git/config {WS}/.git {WS}", check: plants("{WS}/.git/config")},
		{name: "the sandbox's own settings, in HOME", script: "echo '{MARK}' >> '{SETTINGS}'", check: plants("{SETTINGS}")},
		{name: "the sandbox's own record of events", script: "echo '{MARK}' >> '{EVENTS}'", check: plants("{EVENTS}"), alone: true},
	}
	for i := range list {
		list[i].group = group
	}
	return list
}

// roots write what the whole machine obeys. /etc, /usr/local, /root and /var are overlays: see lab.
func roots() []attack {
	const group = "root's files"
	type row struct{ name, path string }
	var list []attack
	for _, r := range []row{
		{"/etc/ld.so.preload", "/etc/ld.so.preload"},
		{"/etc/cron.d", "/etc/cron.d/evil"},
		{"/etc/profile.d", "/etc/profile.d/evil.sh"},
		{"a systemd unit", "/etc/systemd/system/evil.service"},
		{"/usr/local/bin", "/usr/local/bin/evil"},
		{"/root/.ssh/authorized_keys", "/root/.ssh/authorized_keys"},
		{"sudoers", "/etc/sudoers.d/evil"},
	} {
		list = append(list, attack{
			group: group, name: r.name, needs: rooted, check: plants(r.path),
			script: "mkdir -p " + filepath.Dir(r.path) + "; echo '#{MARK}' >> " + r.path,
		})
	}
	return append(list, attack{
		group: group, name: "a setting of the kernel (as core_pattern is)", needs: rooted,
		script: "echo 17 > /proc/sys/kernel/printk_ratelimit_burst; mkdir -p p; mount -t proc proc p && echo 17 > p/sys/kernel/printk_ratelimit_burst",
		setup:  keepSysctl, check: changedSysctl,
	}, attack{
		group: group, name: "a device node of its own", needs: rooted,
		script: "mknod {WS}/full c 1 7; dd if={WS}/full bs=1 count=1 status=none | od -An | grep -q 000 && echo {MARK}",
		check:  func(a *attempt) bool { return countOf(a.stdout, a.mark) > 0 },
	})
}
