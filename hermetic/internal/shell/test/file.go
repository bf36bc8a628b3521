package test

import (
	"io/fs"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
	"egressd/hermetic/vfs"
)

// unary evaluates the operators with one operand, which test and [[ share.
func unary(sh *state.Shell, op, s string) bool {
	switch op {
	case "-z":
		return s == ""
	case "-n":
		return s != ""
	case "-o":
		for _, n := range sh.Options.Names() {
			if n == s {
				return true
			}
		}
		return false
	case "-v":
		return isSet(sh, s)
	case "-R":
		v := sh.Vars.Raw(s)
		return v != nil && v.Ref
	case "-t":
		n, err := strconv.Atoi(strings.TrimSpace(s))
		return err == nil && sh.Stream(n).Terminal()
	}
	return file(sh, op, s)
}

// isSet is -v: a name, an element, or all elements of an array.
func isSet(sh *state.Shell, s string) bool {
	if base, index, ok := vars.SplitSubscript(s); ok {
		base = sh.Vars.Resolve(base)
		if index == "@" || index == "*" {
			v := sh.Vars.Lookup(base)
			return v != nil && len(v.Values()) > 0
		}
		if v := sh.Vars.Lookup(base); v != nil && v.Kind == vars.Assoc {
			index = expand.Text(sh, index)
		}
		_, set := sh.Vars.Element(base, index)
		return set
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n >= 0 && n <= len(sh.Params.List)
	}
	return sh.Vars.IsSet(sh.Vars.Resolve(s))
}

// file evaluates the operators about one file.
func file(sh *state.Shell, op, name string) bool {
	if name == "" {
		return false
	}
	full := state.Join(sh.Dir.Path, name)
	if op == "-L" || op == "-h" {
		info, err := sh.Session.FS.Lstat(full)
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	info, err := redirect.Stat(sh, name)
	if err != nil {
		return false
	}
	switch op {
	case "-e", "-a":
		return true
	case "-f":
		return info.Mode().IsRegular()
	case "-d":
		return info.IsDir()
	case "-s":
		return info.Size() > 0
	case "-c":
		return info.Mode()&fs.ModeCharDevice != 0
	case "-b":
		return info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
	case "-p":
		return info.Mode()&fs.ModeNamedPipe != 0
	case "-S":
		return info.Mode()&fs.ModeSocket != 0
	case "-k":
		return info.Mode()&fs.ModeSticky != 0
	case "-g":
		return info.Mode()&fs.ModeSetgid != 0
	case "-u":
		return info.Mode()&fs.ModeSetuid != 0
	case "-O":
		return vfs.Sys(info).Uid == state.UserID
	case "-G":
		return vfs.Sys(info).Gid == state.UserID
	case "-N":
		a := vfs.Sys(info)
		return a.Mtime.After(a.Atime)
	case "-r", "-w", "-x":
		if redirect.DevFD(full) >= 0 {
			return op != "-x"
		}
		return sh.Session.FS.Access(full, map[string]uint32{"-r": 4, "-w": 2, "-x": 1}[op]) == nil
	}
	return false
}

// files is -nt, -ot and -ef.
func files(sh *state.Shell, op, a, b string) bool {
	x, errX := redirect.Stat(sh, a)
	y, errY := redirect.Stat(sh, b)
	switch op {
	case "-nt":
		return errX == nil && (errY != nil || x.ModTime().After(y.ModTime()))
	case "-ot":
		return errY == nil && (errX != nil || x.ModTime().Before(y.ModTime()))
	}
	if errX != nil || errY != nil {
		return false
	}
	s, t := vfs.Sys(x), vfs.Sys(y)
	return s.Dev == t.Dev && s.Ino == t.Ino && s.Ino != 0
}
