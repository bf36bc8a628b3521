package state

import (
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// DefaultPath is $PATH without an environment.
const DefaultPath = "/usr/bin:/bin"

// Target is what the name of a command stands for.
type Target struct {
	Name   string // a command of the session, or "sh" or "bash"
	Script string // the path of a script; "" for a command
}

// IsBin reports the directories of the commands of the session.
func IsBin(dir string) bool {
	return dir == "/bin" || dir == "/usr/bin"
}

// Has reports whether the session has a command.
func (s *Session) Has(name string) bool {
	return name == "sh" || name == "bash" || s.Table[name] != nil
}

// At is the file or command at a path; why is bash's reason if it cannot be
// run.
func (s *Session) At(dir, path string) (what Target, why string) {
	full := Join(dir, path)
	info, err := s.FS.Stat(full)
	if err != nil {
		if IsBin(full) || full == "/usr" {
			return what, "Is a directory"
		}
		if i := strings.LastIndexByte(full, '/'); IsBin(full[:i]) && s.Has(full[i+1:]) {
			return Target{Name: full[i+1:]}, ""
		}
		return what, command.Reason(err)
	}
	switch {
	case info.IsDir():
		return what, "Is a directory"
	case s.FS.Access(full, 1) != nil || !info.Mode().IsRegular():
		return what, command.Reason(syscall.EACCES)
	}
	return Target{Script: full, Name: path}, ""
}

// FindCommand looks up a name without a slash in PATH.
func (sh *Shell) FindCommand(name string) (string, bool) {
	if p, ok := sh.Commands.Hashed[name]; ok {
		return p, true
	}
	p, ok := sh.Session.LookPath(sh.Dir.Path, name, sh.Vars.Get("PATH"))
	if ok {
		if sh.Commands.Hashed == nil {
			sh.Commands.Hashed = map[string]string{}
		}
		sh.Commands.Hashed[name] = p
	}
	return p, ok
}

// LookPath finds a command in the directories of path, relative ones below
// dir. The result is its path as PATH spells it.
func (s *Session) LookPath(dir, name, path string) (string, bool) {
	if name == "" || name == "." || name == ".." {
		return "", false
	}
	for _, d := range strings.Split(path, ":") {
		if IsBin(d) && s.Has(name) {
			return d + "/" + name, true
		}
		full := Join(dir, d)
		if d == "" {
			full, d = dir, "."
		}
		full = Join(full, name)
		info, err := s.FS.Stat(full)
		if err != nil || !info.Mode().IsRegular() || s.FS.Access(full, 1) != nil {
			continue
		}
		return strings.TrimSuffix(d, "/") + "/" + name, true
	}
	return "", false
}

// Join makes name absolute below dir. It does not clean the path.
func Join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// TildeDir writes a directory with ~ for the home.
func (sh *Shell) TildeDir(dir string) string {
	home := sh.Vars.Get("HOME")
	if home == "" || home == "/" {
		return dir
	}
	if dir == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(dir, home+"/"); ok {
		return "~/" + rest
	}
	return dir
}
