package realpath

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// missing says which parts of a name need not exist.
type missing int

const (
	missingNone missing = iota
	missingLast
	MissingAny
)

const maxLinks = 40

// Canonical is name, which is absolute, without links, "." and "..".
func Canonical(w *gnu.Work, name string, m missing) (string, error) {
	rest := split(name)
	slash := strings.HasSuffix(name, "/") || strings.HasSuffix(name, "/.")
	at := ""
	links := 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case ".":
			continue
		case "..":
			at = at[:max(0, strings.LastIndexByte(at, '/'))]
			continue
		}
		next := at + "/" + part
		fi, err := w.FS.Lstat(next)
		if err != nil {
			if m == MissingAny || m == missingLast && errors.Is(err, syscall.ENOENT) && len(rest) == 0 {
				at = next
				continue
			}
			return "", err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			if !fi.IsDir() && m != MissingAny && (len(rest) > 0 || slash) {
				return "", syscall.ENOTDIR
			}
			at = next
			continue
		}
		if links++; links > maxLinks {
			if m == MissingAny {
				at = next
				continue
			}
			return "", syscall.ELOOP
		}
		target, err := w.FS.Readlink(next)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(target, "/") {
			at = ""
		}
		rest = append(split(target), rest...)
	}
	if at == "" {
		return "/", nil
	}
	return at, nil
}

// logical is name without "." and "..", its links as they are.
func logical(name string) string {
	var out []string
	for _, p := range split(name) {
		switch {
		case p == ".":
		case p == ".." && len(out) > 0:
			out = out[:len(out)-1]
		case p != "..":
			out = append(out, p)
		}
	}
	return "/" + strings.Join(out, "/")
}

func readlink(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... FILE...", "f,canonicalize e,canonicalize-existing m,canonicalize-missing n,no-newline q,quiet s,silent v,verbose z,zero")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	verbose, end, canon, how := w.Getenv("POSIXLY_CORRECT") != "", "\n", false, missingLast
	for _, s := range sets {
		switch s.Name {
		case "canonicalize":
			canon, how = true, missingLast
		case "canonicalize-existing":
			canon, how = true, missingNone
		case "canonicalize-missing":
			canon, how = true, MissingAny
		case "no-newline":
			end = ""
		case "quiet", "silent":
			verbose = false
		case "verbose":
			verbose = true
		case "zero":
			end = "\x00"
		}
	}
	if len(names) > 1 && gnu.Has(sets, "no-newline") {
		w.Complain("ignoring --no-newline with multiple arguments")
		if end == "" {
			end = "\n"
		}
	}
	for _, n := range names {
		text, err := "", error(syscall.ENOENT)
		switch {
		case n == "":
		case canon:
			text, err = Canonical(w, w.Path(n), how)
		default:
			text, err = w.FS.Readlink(w.Path(n))
		}
		if err != nil {
			w.Status = 1
			if verbose {
				w.Complain("%s: %s", gnu.QuoteName(n), command.Reason(err))
			}
			continue
		}
		_, _ = w.Out.WriteString(text + end)
	}
}

func realpath(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... FILE...",
		"e,canonicalize-existing m,canonicalize-missing L,logical P,physical q,quiet ,relative-to: ,relative-base: s,strip ,no-symlinks z,zero")
	if !ok {
		return
	}
	r := &pathCall{Work: w, how: missingLast, end: "\n"}
	for _, s := range sets {
		switch s.Name {
		case "canonicalize-existing":
			r.how = missingNone
		case "canonicalize-missing":
			r.how = MissingAny
		case "logical":
			r.logical = true
		case "physical":
			r.logical, r.strip = false, false
		case "strip", "no-symlinks":
			r.strip = true
		case "quiet":
			r.quiet = true
		case "relative-to":
			r.to, r.toSet = s.Value, true
		case "relative-base":
			r.base, r.baseSet = s.Value, true
		case "zero":
			r.end = "\x00"
		}
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	r.each(names)
}

type pathCall struct {
	*gnu.Work
	how            missing
	logical, strip bool
	quiet          bool
	to, base       string
	toSet, baseSet bool
	end            string
}

func (r *pathCall) resolve(name string) (string, error) {
	if name == "" {
		return "", syscall.ENOENT
	}
	p := r.Path(name)
	if r.logical {
		p = logical(p)
	}
	if r.strip {
		p = logical(p)
		if r.how == MissingAny {
			return p, nil
		}
		if fi, err := r.FS.Stat(Parent(p)); r.how == missingLast && (err != nil || fi.IsDir()) {
			return p, nil
		} else if err == nil && !fi.IsDir() {
			return p, syscall.ENOTDIR
		}
		_, err := r.FS.Stat(p)
		return p, err
	}
	return Canonical(r.Work, p, r.how)
}

func (r *pathCall) each(names []string) {
	for _, d := range []struct {
		set  bool
		name *string
	}{{r.toSet, &r.to}, {r.baseSet, &r.base}} {
		if !d.set {
			continue
		}
		p, err := r.resolve(*d.name)
		if err == nil && r.how == missingNone && !gnu.IsDir(r.Work, p) {
			err = syscall.ENOTDIR
		}
		if err != nil {
			r.Die(1, "%s: %s", gnu.QuoteName(*d.name), command.Reason(err))
			return
		}
		*d.name = p
	}
	if r.baseSet && !r.toSet {
		r.to, r.toSet = r.base, true
	} else if r.baseSet && !Within(r.base, r.to) {
		r.toSet = false
	}
	for _, n := range names {
		p, err := r.resolve(n)
		if err != nil {
			r.Status = 1
			if !r.quiet {
				r.Complain("%s: %s", gnu.QuoteName(n), command.Reason(err))
			}
			continue
		}
		if r.toSet && (!r.baseSet || Within(r.base, p)) {
			p = Relative(r.to, p)
		}
		_, _ = r.Out.WriteString(p + r.end)
	}
}

// Within says whether p is base or lies in it.
func Within(base, p string) bool {
	return base == "/" || p == base || strings.HasPrefix(p, base+"/")
}

// Parent is the directory that name is in.
func Parent(name string) string {
	t := gnu.TrimSlashes(name)
	at := strings.LastIndexByte(t, '/')
	switch {
	case at < 0:
		return "."
	case strings.Trim(t[:at], "/") == "":
		return "/"
	}
	return strings.TrimRight(t[:at], "/")
}

// Relative is the way from a directory to a file, both without links.
func Relative(dir, to string) string {
	if dir == to {
		return "."
	}
	a, b := split(dir), split(to)
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	parts := append(strings.Split(strings.Repeat("../", len(a)-n), "/")[:len(a)-n], b[n:]...)
	return strings.Join(parts, "/")
}

func split(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
}
