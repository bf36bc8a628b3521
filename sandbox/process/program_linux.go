package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// interpreters run the file that their first argument names.
var interpreters = []string{
	"sh", "bash", "dash", "zsh", "ksh", "python", "python3", "pypy3", "node", "nodejs", "deno", "bun", "tsx", "ruby", "perl", "php", "lua",
}

// around lists the directories in which the program at path finds what belongs to it:
// those of the file, and of each link to it.
func (c *config) around(path string) []string {
	var dirs []string
	for range maxLinks {
		dir := filepath.Dir(path)
		all := c.install(dir)
		if dirs = append(dirs, all...); len(all) == 1 && below(dir, privateRoots) && isBin(dir) {
			c.partial = dir
		}
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		dirs = append(dirs, c.install(filepath.Dir(real))...)
	}
	return dirs
}

// install lists what a program in dir is installed with: dir, the whole of an
// installation that dir is the bin directory of, the packages of Node around it.
//
// Threat: a program is installed in the directory for temporary files itself, and all
// that other programs handed over there is carried in -> not the one of TMPDIR, nor
// HOME, nor one above them, nor one that everybody may write to. Left over: what else lies in the
// directory of an installation can be read.
func (c *config) install(dir string) []string {
	dirs := []string{dir}
	if !below(dir, privateRoots) {
		return dirs // it is there
	}
	if at := strings.Index(dir+"/", "/node_modules/"); at > 0 {
		dirs = append(dirs, dir[:at]+"/node_modules", dir[:at])
	} else if isBin(dir) {
		dirs = append(dirs, filepath.Dir(dir))
	}
	return slices.DeleteFunc(dirs, func(d string) bool { return d != dir && c.handsOver(d) })
}

// isBin reports whether dir is the part of an installation that holds its programs.
func isBin(dir string) bool {
	return slices.Contains([]string{"bin", "sbin", "libexec"}, filepath.Base(dir))
}

// handsOver reports whether programs leave files for each other in dir.
func (c *config) handsOver(dir string) bool {
	for _, t := range []string{c.TmpDir, realPath(c.TmpDir), c.home, realPath(c.home)} {
		if t == dir || strings.HasPrefix(t, dir+"/") {
			return true
		}
	}
	fi, err := os.Stat(dir)
	return err != nil || fi.Mode()&fs.ModeSticky != 0 || fi.Mode().Perm()&0o002 != 0
}

// script is the file that an interpreter is to run, as "node /tmp/x/main.js"; "": none.
func (c *config) script() string {
	if !slices.Contains(interpreters, filepath.Base(c.Argv[0])) {
		return ""
	}
	for _, a := range c.Argv[1:] {
		if a == "-c" || a == "-e" || a == "-m" || a == "--" {
			return "" // text, a module, or nothing that is known
		}
		if strings.HasPrefix(a, "-") {
			continue
		}
		if !filepath.IsAbs(a) {
			a = filepath.Join(c.Dir, a)
		}
		if fi, err := os.Stat(a); err == nil && fi.Mode().IsRegular() {
			return a
		}
	}
	return ""
}
