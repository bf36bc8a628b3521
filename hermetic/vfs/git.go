package vfs

import "strings"

// dotGit reports whether a component is called .git, in any case and with any of
// the characters in it that file systems of macOS do not see.
//
// Threat: a script plants a hook, a filter or a program in .git/config, which
// git on the host runs when somebody looks at the result -> nothing that is
// called .git, at any depth, can be made, changed, moved or linked, whether it
// is reached by its name, through a link or by the file behind a second hard
// link (hardlink.go), and nothing that is reached through a link of that name.
// Where the workspace's own .git says that the repository is elsewhere, that
// place is protected by who opens the workspace (Config.Protect). Left over: files that git reads and that are content (.gitattributes,
// .gitmodules) stay writable, as in every change that somebody proposes; they
// name filters and programs only together with a configuration.
func dotGit(name string) bool {
	if len(name) < 4 {
		return false
	}
	return strings.EqualFold(strings.Map(unseen, name), ".git")
}

// unseen drops what HFS+ ignores in names.
func unseen(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}
