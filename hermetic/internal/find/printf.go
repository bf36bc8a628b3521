package find

import (
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

// segment is a piece of a -printf format.
type segment struct {
	text  string
	verb  byte // 0: text alone
	which byte // of A, B, C and T
	flags string
	width int
	prec  int
}

const maxWidth = 4096

func (p *parser) printf(w io.Writer, format string) (node, error) {
	list, err := p.segments(format)
	if err != nil {
		return nil, err
	}
	return func(v *visit) bool {
		for _, s := range list {
			if s.verb == 0 {
				_, _ = io.WriteString(w, s.text)
				continue
			}
			_, _ = io.WriteString(w, s.pad(p.field(s, v)))
		}
		return true
	}, nil
}

func (p *parser) segments(format string) (list []segment, err error) {
	text := func(s string) { list = append(list, segment{text: s}) }
	for i := 0; i < len(format); i++ {
		switch c := format[i]; {
		case c == '\\' && i+1 < len(format):
			s, n, stop := p.escape(format[i+1:])
			if text(s); stop {
				return list, nil
			}
			i += n
		case c == '\\':
			p.Complain("warning: escape `\\' followed by nothing at all")
			text(`\`)
		case c == '%' && i+1 < len(format):
			s, n := p.segment(format[i+1:])
			list = append(list, s)
			i += n
		case c == '%':
			return nil, complain("error: %% at end of format string")
		default:
			text(string(c))
		}
	}
	return list, nil
}

func (p *parser) escape(s string) (text string, n int, stop bool) {
	if at := strings.IndexByte(`abfnrtv\`, s[0]); at >= 0 {
		return string("\a\b\f\n\r\t\v\\"[at]), 1, false
	}
	if s[0] == 'c' {
		return "", 1, true
	}
	for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		n++
	}
	if n > 0 {
		v, _ := strconv.ParseUint(s[:n], 8, 16)
		return string([]byte{byte(v)}), n, false
	}
	p.Complain("warning: unrecognized escape `\\%c'", s[0])
	return `\` + s[:1], 1, false
}

func (p *parser) segment(s string) (g segment, n int) {
	g.width, g.prec = -1, -1
	for n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0 {
		n++
	}
	g.flags = s[:n]
	number := func() int {
		v := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			v = min(v*10+int(s[n]-'0'), maxWidth)
			n++
		}
		return v
	}
	if n < len(s) && s[n] >= '1' && s[n] <= '9' {
		g.width = number()
	}
	if n < len(s) && s[n] == '.' {
		n++
		g.prec = number()
	}
	if n == len(s) {
		g.text = "%" + s
		return g, n
	}
	c := s[n]
	n++
	switch {
	case c == '%':
		return segment{text: "%"}, n
	case strings.IndexByte("ABCT", c) >= 0 && n < len(s):
		g.verb, g.which = c, s[n]
		n++
	case strings.IndexByte("abcdDfFgGhHiklmMnpPsStuUyYZ", c) >= 0:
		g.verb = c
	default:
		p.Complain("warning: unrecognized format directive `%%%c'", c)
		return segment{text: "%" + s[:n]}, n
	}
	return g, n
}

func (g segment) pad(s string) string {
	if g.prec >= 0 && len(s) > g.prec && strings.IndexByte("dDGiknsSUb", g.verb) < 0 {
		s = s[:g.prec]
	}
	gap := g.width - len(s)
	switch {
	case gap <= 0:
		return s
	case strings.Contains(g.flags, "-"):
		return s + strings.Repeat(" ", gap)
	case strings.Contains(g.flags, "0") && (g.verb == 'd' || g.verb == 'm'):
		return strings.Repeat("0", gap) + s
	}
	return strings.Repeat(" ", gap) + s
}

func (p *parser) field(g segment, v *visit) string {
	n := v.node
	dec := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch g.verb {
	case 'p':
		return v.path
	case 'f':
		if strings.HasSuffix(v.path, "/") {
			return strings.TrimSuffix(v.base(), "/") + "/"
		}
		return v.base()
	case 'h':
		return dirPart(v.path)
	case 'H':
		return v.start
	case 'P':
		return strings.TrimPrefix(strings.TrimPrefix(v.path, v.start), "/")
	case 'd':
		sign := ""
		if strings.Contains(g.flags, "+") {
			sign = "+"
		} else if strings.Contains(g.flags, " ") {
			sign = " "
		}
		return sign + dec(int64(v.depth))
	case 's':
		return dec(n.Size)
	case 'k':
		return dec((n.Blocks + 1) / 2)
	case 'b':
		return dec(n.Blocks)
	case 'm':
		s := strconv.FormatUint(uint64(modes.Of(v.fi.Mode())), 8)
		if strings.Contains(g.flags, "#") {
			s = "0" + s
		}
		return s
	case 'M':
		return modes.String(v.fi.Mode())
	case 'n':
		return strconv.FormatUint(n.Links, 10)
	case 'u':
		return inode.Name(n.UID)
	case 'g':
		return inode.Name(n.GID)
	case 'U':
		return dec(int64(n.UID))
	case 'G':
		return dec(int64(n.GID))
	case 'i':
		return strconv.FormatUint(n.Ino, 10)
	case 'D':
		return strconv.FormatUint(n.Dev, 10)
	case 'F':
		return p.fsType(v.path)
	case 'S':
		if n.Size == 0 {
			return "1"
		}
		return strconv.FormatFloat(512*float64(n.Blocks)/float64(n.Size), 'g', 6, 64)
	}
	return p.otherField(g, v)
}

func (p *parser) otherField(g segment, v *visit) string {
	n := v.node
	switch g.verb {
	case 'y':
		return string(letter(v.fi.Mode()))
	case 'Y':
		fi, err := p.FS.Stat(p.Path(v.path))
		switch {
		case err == nil:
			return string(letter(fi.Mode()))
		case command.Reason(err) == "Too many levels of symbolic links":
			return "L"
		}
		return "N"
	case 'l':
		if v.fi.Mode()&fs.ModeSymlink == 0 {
			return ""
		}
		t, _ := p.FS.Readlink(p.Path(v.path))
		return t
	case 'a':
		return p.ctime(n.Atime)
	case 'c':
		return p.ctime(n.Ctime)
	case 't':
		return p.ctime(n.Mtime)
	case 'A':
		return p.timeField(n.Atime, g.which)
	case 'C':
		return p.timeField(n.Ctime, g.which)
	case 'T':
		return p.timeField(n.Mtime, g.which)
	}
	return ""
}

// dirPart is %h: what is before the last slash of a path.
func dirPart(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at < 0 {
		return "."
	}
	return path[:at]
}

// fraction is how find writes what is below a second.
func fraction(t time.Time) string { return fmt.Sprintf(".%09d0", t.Nanosecond()) }

func (p *parser) ctime(t time.Time) string {
	t = t.In(p.zone)
	return date.Format("%a %b %e %H:%M:%S", t) + fraction(t) + date.Format(" %Y", t)
}

func (p *parser) timeField(t time.Time, which byte) string {
	t = t.In(p.zone)
	switch which {
	case '@':
		return strconv.FormatInt(t.Unix(), 10) + fraction(t)
	case '+':
		return date.Format("%Y-%m-%d+%H:%M:%S", t) + fraction(t)
	case 'S', 'T', 'X':
		return date.Format("%"+string(which), t) + fraction(t)
	}
	return date.Format("%"+string(which), t)
}
