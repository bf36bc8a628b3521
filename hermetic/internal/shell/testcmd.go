package shell

import (
	"io/fs"
	"strconv"
	"strings"

	"egressd/hermetic/vfs"
)

// testUnary is the operators with one operand that [[, [ and test share.
func (sh *shell) testUnary(op, s string) bool {
	switch op {
	case "-z":
		return s == ""
	case "-n":
		return s != ""
	case "-o":
		for _, n := range sh.optsOn() {
			if n == s {
				return true
			}
		}
		return false
	case "-v":
		return sh.testSet(s)
	case "-R":
		v := sh.raw(s)
		return v != nil && v.ref
	case "-t":
		n, err := strconv.Atoi(strings.TrimSpace(s))
		return err == nil && sh.bound(n).Terminal()
	}
	return sh.testFile(op, s)
}

// testSet is -v: a name, an element, or all of an array.
func (sh *shell) testSet(s string) bool {
	if base, index, ok := splitSubscript(s); ok {
		base = sh.resolve(base)
		if index == "@" || index == "*" {
			v := sh.lookup(base)
			return v != nil && len(v.values()) > 0
		}
		if v := sh.lookup(base); v != nil && v.kind == assocVar {
			index = sh.expandText(index)
		}
		_, set := sh.element(base, index)
		return set
	}
	if n, err := strconv.Atoi(s); err == nil {
		return n >= 0 && n <= len(sh.params)
	}
	return sh.isSet(sh.resolve(s))
}

// stat follows links; the names of descriptors are this shell's.
func (sh *shell) stat(name string) (fs.FileInfo, error) {
	full := join(sh.dir, name)
	if n := devFD(full); n >= 0 {
		if sh.fds[n] == nil {
			return nil, fs.ErrNotExist
		}
		return sh.bound(n).Stat()
	}
	return sh.ses.FS.Stat(full)
}

func (sh *shell) testFile(op, name string) bool {
	if name == "" {
		return false
	}
	full := join(sh.dir, name)
	if op == "-L" || op == "-h" {
		info, err := sh.ses.FS.Lstat(full)
		return err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	info, err := sh.stat(name)
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
		return vfs.Sys(info).Uid == userID
	case "-G":
		return vfs.Sys(info).Gid == userID
	case "-N":
		a := vfs.Sys(info)
		return a.Mtime.After(a.Atime)
	case "-r", "-w", "-x":
		if devFD(full) >= 0 {
			return op != "-x"
		}
		return sh.ses.FS.Access(full, map[string]uint32{"-r": 4, "-w": 2, "-x": 1}[op]) == nil
	}
	return false
}

// testFiles is -nt, -ot and -ef.
func (sh *shell) testFiles(op, a, b string) bool {
	x, errX := sh.stat(a)
	y, errY := sh.stat(b)
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

// testArgs is the evaluation of test and [.
type testArgs struct {
	sh   *shell
	name string
	args []string
	at   int
	bad  string
}

func builtinTest(sh *shell, args []string) int {
	t := &testArgs{sh: sh, name: args[0], args: args[1:]}
	if t.name == "[" {
		if len(t.args) == 0 || t.args[len(t.args)-1] != "]" {
			sh.errorf("[: missing `]'")
			return 2
		}
		t.args = t.args[:len(t.args)-1]
	}
	ok := t.count(t.args)
	switch {
	case t.bad != "":
		sh.errorf("%s: %s", t.name, t.bad)
		return 2
	case ok:
		return 0
	}
	return 1
}

func (t *testArgs) fail(s string) bool {
	if t.bad == "" {
		t.bad = s
	}
	return false
}

// count is POSIX's rule: the number of arguments says what they are.
func (t *testArgs) count(a []string) bool {
	switch len(a) {
	case 0:
		return false
	case 1:
		return a[0] != ""
	case 2:
		if a[0] == "!" {
			return a[1] == ""
		}
		if isUnary(a[0]) {
			return t.sh.testUnary(a[0], a[1])
		}
		return t.fail(a[0] + ": unary operator expected")
	case 3:
		switch {
		case isBinary(a[1]):
			return t.binary(a[0], a[1], a[2])
		case a[1] == "-a":
			return a[0] != "" && a[2] != ""
		case a[1] == "-o":
			return a[0] != "" || a[2] != ""
		case a[0] == "!":
			return !t.count(a[1:])
		case a[0] == "(" && a[2] == ")":
			return t.count(a[1:2])
		}
		return t.fail(a[1] + ": binary operator expected")
	case 4:
		switch {
		case a[0] == "!":
			return !t.count(a[1:])
		case a[0] == "(" && a[3] == ")":
			return t.count(a[1:3])
		}
	}
	t.args, t.at = a, 0
	ok := t.or()
	if t.bad == "" && t.at < len(t.args) {
		return t.fail("too many arguments")
	}
	return ok
}

func isUnary(s string) bool {
	return len(s) == 2 && s[0] == '-' && strings.IndexByte("abcdefghknoprstuvwxzGLNORS", s[1]) >= 0
}

func isBinary(s string) bool {
	switch s {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *testArgs) or() bool {
	ok := t.and()
	for t.at < len(t.args) && t.args[t.at] == "-o" {
		t.at++
		more := t.and()
		ok = ok || more
	}
	return ok
}

func (t *testArgs) and() bool {
	ok := t.term(0)
	for t.at < len(t.args) && t.args[t.at] == "-a" {
		t.at++
		more := t.term(0)
		ok = ok && more
	}
	return ok
}

func (t *testArgs) term(depth int) bool {
	if t.bad != "" || t.at >= len(t.args) || depth > 1000 {
		return t.fail("argument expected")
	}
	a := t.args[t.at]
	left := len(t.args) - t.at
	switch {
	case a == "!":
		t.at++
		return !t.term(depth + 1)
	case left >= 3 && isBinary(t.args[t.at+1]):
		t.at += 3
		return t.binary(a, t.args[t.at-2], t.args[t.at-1])
	case a == "(":
		t.at++
		if depth > 100 {
			return t.fail("too many arguments")
		}
		ok := t.or()
		if t.at >= len(t.args) || t.args[t.at] != ")" {
			return t.fail("`)' expected")
		}
		t.at++
		return ok
	case left >= 2 && isUnary(a):
		t.at += 2
		return t.sh.testUnary(a, t.args[t.at-1])
	}
	t.at++
	return a != ""
}

func (t *testArgs) binary(a, op, b string) bool {
	switch op {
	case "=", "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case ">":
		return a > b
	case "-nt", "-ot", "-ef":
		return t.sh.testFiles(op, a, b)
	}
	m, ok := integer(a)
	if !ok {
		return t.fail(a + ": integer expression expected")
	}
	n, ok := integer(b)
	if !ok {
		return t.fail(b + ": integer expression expected")
	}
	return compareInts(op, m, n)
}

// integer is a decimal number with blanks around it.
func integer(s string) (int64, bool) {
	s = strings.Trim(s, " \t\n")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.HasPrefix(s, "+-") {
		return 0, false
	}
	return n, true
}
