package stat

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
	"egressd/hermetic/internal/realpath"
)

const (
	statDefault = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %h\n" + statTail
	statDevice  = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %-5h Device type: %Hr,%Lr\n" + statTail
	statTail    = "Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n"
	statTerse   = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n"
)

// stater is one call of stat.
type stater struct {
	*gnu.Work
	format string
	escape bool // of --printf
	zone   *time.Location
}

func stat(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... FILE...", "L,dereference f,file-system ,cached: c,format: ,printf: t,terse")
	if !ok {
		return
	}
	s := &stater{Work: w, zone: date.Zone(w.Getenv("TZ"))}
	follow := false
	for _, o := range sets {
		switch o.Name {
		case "dereference":
			follow = true
		case "file-system":
			w.Refuse("--file-system")
			return
		case "format":
			s.format, s.escape = o.Value+"\n", false
		case "printf":
			s.format, s.escape = o.Value, true
		case "terse":
			if s.format == "" {
				s.format = statTerse
			}
		}
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	for _, n := range names {
		if w.Ctx.Err() != nil {
			return
		}
		s.one(n, follow)
	}
}

func (s *stater) one(name string, follow bool) {
	fi, err := gnu.Lstat(s.Work, name)
	if err == nil && follow {
		fi, err = gnu.Stat(s.Work, name)
	}
	if err != nil {
		s.Fault("cannot statx %s: %s", gnu.QuoteShell(name), command.Reason(err))
		return
	}
	format := s.format
	fixed := format == ""
	if fixed {
		if format = statDefault; fi.Mode()&fs.ModeDevice != 0 {
			format = statDevice
		}
	}
	f := &statFormat{stater: s, name: name, fi: fi, node: inode.Of(fi), plain: fixed}
	f.print(format)
}

// statFormat writes one file in a format.
type statFormat struct {
	*stater
	name  string
	fi    fs.FileInfo
	node  inode.Inode
	plain bool
}

func (f *statFormat) print(format string) {
	for i := 0; i < len(format); i++ {
		switch c := format[i]; {
		case c == '%':
			i += f.directive(format[i+1:])
		case c == '\\' && f.escape:
			i += f.backslash(format[i+1:])
		default:
			_ = f.Out.WriteByte(c)
		}
	}
}

// backslash writes an escape of --printf, and reports its length.
func (f *statFormat) backslash(s string) int {
	if s == "" {
		f.Complain("warning: backslash at end of format")
		_ = f.Out.WriteByte('\\')
		return 0
	}
	if at := strings.IndexByte(`abefnrtv"\`, s[0]); at >= 0 {
		_ = f.Out.WriteByte("\a\b\x1b\f\n\r\t\v\"\\"[at])
		return 1
	}
	if s[0] >= '0' && s[0] <= '7' {
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 16)
		_ = f.Out.WriteByte(byte(v))
		return n
	}
	if s[0] == 'x' {
		n := 1
		for n < 3 && n < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
			n++
		}
		if v, err := strconv.ParseUint(s[1:n], 16, 8); err == nil {
			_ = f.Out.WriteByte(byte(v))
			return n
		}
	}
	f.Complain("warning: unrecognized escape '\\%c'", s[0])
	_ = f.Out.WriteByte(s[0])
	return 1
}

// spec is the flags, the width and the precision of a directive.
type spec struct {
	flags            string
	width, precision int // -1: none
}

const statMaxWidth = 4096

func readSpec(s string) (p spec, n int) {
	p.width, p.precision = -1, -1
	for n < len(s) && strings.IndexByte("'-+ #0I", s[n]) >= 0 {
		n++
	}
	p.flags = s[:n]
	number := func() int {
		v := 0
		for n < len(s) && isDigit(s[n]) {
			v = min(v*10+int(s[n]-'0'), statMaxWidth)
			n++
		}
		return v
	}
	if n < len(s) && isDigit(s[n]) {
		p.width = number()
	}
	if n < len(s) && s[n] == '.' {
		n++
		p.precision = number()
	}
	return p, n
}

func (p spec) pad(s string, numeric bool) string {
	gap := p.width - gnu.Columns(s)
	switch {
	case gap <= 0:
		return s
	case strings.Contains(p.flags, "-"):
		return s + strings.Repeat(" ", gap)
	case numeric && strings.Contains(p.flags, "0"):
		return strings.Repeat("0", gap) + s
	}
	return strings.Repeat(" ", gap) + s
}

// directive writes what follows a percent sign, and reports its length.
func (f *statFormat) directive(s string) int {
	p, n := readSpec(s)
	if n == len(s) || s[n] == '\n' && n == len(s)-1 {
		_, _ = f.Out.WriteString("%" + s[:n])
		return n
	}
	c, half := s[n], byte(0)
	n++
	if (c == 'H' || c == 'L') && n < len(s) && (s[n] == 'd' || s[n] == 'r') {
		half, c = c, s[n]
		n++
	}
	if c == '%' {
		_ = f.Out.WriteByte('%')
		return n
	}
	if text, ok := f.text(c); ok {
		if p.precision >= 0 && len(text) > p.precision {
			text = text[:p.precision]
		}
		_, _ = f.Out.WriteString(p.pad(text, false))
		return n
	}
	text, ok := f.number(c, half, p)
	if !ok {
		_ = f.Out.WriteByte('?')
		return n
	}
	_, _ = f.Out.WriteString(p.pad(text, true))
	return n
}

func (f *statFormat) text(c byte) (string, bool) {
	stamp := func(t time.Time) string { return date.Format("%Y-%m-%d %H:%M:%S.%N %z", t.In(f.zone)) }
	switch c {
	case 'n':
		return f.name, true
	case 'N':
		quote := gnu.QuoteShell
		if f.plain {
			quote = gnu.QuoteName
		}
		out := quote(f.name)
		if f.fi.Mode()&fs.ModeSymlink != 0 {
			if t, err := f.FS.Readlink(f.Path(f.name)); err == nil {
				out += " -> " + quote(t)
			}
		}
		return out, true
	case 'A':
		return modes.String(f.fi.Mode()), true
	case 'F':
		return modes.FileKind(f.fi.Mode(), f.fi.Size()), true
	case 'U':
		return inode.Name(f.node.UID), true
	case 'G':
		return inode.Name(f.node.GID), true
	case 'x':
		return stamp(f.node.Atime), true
	case 'y':
		return stamp(f.node.Mtime), true
	case 'z':
		return stamp(f.node.Ctime), true
	case 'w':
		return "-", true
	case 'm':
		return mountPoint(f.Work, f.name), true
	}
	return "", false
}

// mountPoint is the root of the file system that a name is on.
func mountPoint(w *gnu.Work, name string) string {
	p, err := w.FS.Resolve(w.Path(name))
	for _, m := range []string{"/tmp", "/dev"} {
		if err == nil && realpath.Within(m, p) {
			return m
		}
	}
	return "/"
}

func (f *statFormat) number(c, half byte, p spec) (string, bool) {
	n := f.node
	dec := func(v uint64) (string, bool) { return strconv.FormatUint(v, 10), true }
	hex := func(v uint64) (string, bool) { return alternate(p, "0x", strconv.FormatUint(v, 16)), true }
	device := func(v uint64) (string, bool) {
		switch half {
		case 'H':
			return dec(inode.Major(v))
		case 'L':
			return dec(inode.Minor(v))
		}
		return dec(v)
	}
	switch c {
	case 'a':
		return alternate(p, "0", strconv.FormatUint(uint64(modes.Of(f.fi.Mode())), 8)), true
	case 'b':
		return strconv.FormatInt(n.Blocks, 10), true
	case 'B':
		return "512", true
	case 'd':
		return device(n.Dev)
	case 'D':
		return hex(n.Dev)
	case 'f':
		return hex(uint64(modes.Kind(f.fi.Mode())) | uint64(modes.Of(f.fi.Mode())))
	case 'g':
		return dec(uint64(n.GID))
	case 'u':
		return dec(uint64(n.UID))
	case 'h':
		return dec(n.Links)
	case 'i':
		return dec(n.Ino)
	case 'o':
		return strconv.FormatInt(n.Block, 10), true
	case 'r':
		return device(n.Rdev)
	case 'R':
		return hex(n.Rdev)
	case 's':
		return strconv.FormatInt(n.Size, 10), true
	case 't':
		return hex(inode.Major(n.Rdev))
	case 'T':
		return hex(inode.Minor(n.Rdev))
	case 'X':
		return seconds(n.Atime, p), true
	case 'Y':
		return seconds(n.Mtime, p), true
	case 'Z':
		return seconds(n.Ctime, p), true
	case 'W':
		return "0", true
	}
	return "", false
}

func alternate(p spec, prefix, s string) string {
	if strings.Contains(p.flags, "#") && s != "0" {
		return prefix + s
	}
	return s
}

func seconds(t time.Time, p spec) string {
	s := strconv.FormatInt(t.Unix(), 10)
	if p.precision > 0 {
		ns := fmt.Sprintf("%09d", t.Nanosecond()) + strings.Repeat("0", max(0, p.precision-9))
		s += "." + ns[:p.precision]
	}
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
