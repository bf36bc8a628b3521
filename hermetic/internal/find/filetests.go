package find

import (
	"io/fs"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

// fileTest are tests that take another kind of argument.
func (p *parser) fileTest(name string) (node, bool, error) {
	known := map[string]func(string) (node, error){
		"-type": p.kind, "-xtype": p.linkKind, "-perm": p.perm, "-user": p.user, "-group": p.ownerGroup, "-samefile": p.same, "-fstype": p.fileSystem,
		"-newer": func(v string) (node, error) { return p.newer("mm", v) }, "-anewer": func(v string) (node, error) { return p.newer("am", v) },
		"-cnewer": func(v string) (node, error) { return p.newer("cm", v) },
	}
	f := known[name]
	if xy, ok := strings.CutPrefix(name, "-newer"); ok && f == nil {
		if len(xy) != 2 || !strings.Contains("aBcm", xy[:1]) || !strings.Contains("aBcmt", xy[1:]) {
			return nil, true, complain("invalid predicate `%s'", name)
		}
		f = func(v string) (node, error) { return p.newer(xy, v) }
	}
	if f == nil {
		return nil, false, nil
	}
	v, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	n, err := f(v)
	return n, true, err
}

// letter is how find calls a kind of file.
func letter(m fs.FileMode) byte {
	if c := modes.String(m)[0]; c != '-' {
		return c
	}
	return 'f'
}

func kinds(option, text string) (string, error) {
	var letters string
	for i, part := range strings.Split(text, ",") {
		switch {
		case len(part) == 1 && strings.Contains("bcdpflsD", part):
			letters += part
		case part == "" && i == 0:
			return "", complain("Arguments to %s should contain at least one letter", option)
		case part == "":
			return "", complain("Last file type in list argument to %s is missing, i.e., list is ending on: ','", option)
		case len(part) > 1 && strings.Contains("bcdpflsD", part[:1]):
			return "", complain("Must separate multiple arguments to %s using: ','", option)
		default:
			return "", complain("Unknown argument to %s: %s", option, part[:1])
		}
	}
	return letters, nil
}

func (p *parser) kind(text string) (node, error) {
	letters, err := kinds("-type", text)
	return func(v *visit) bool { return strings.IndexByte(letters, letter(v.fi.Mode())) >= 0 }, err
}

// linkKind is -xtype: what -type would say with links treated the other way.
func (p *parser) linkKind(text string) (node, error) {
	letters, err := kinds("-xtype", text)
	return func(v *visit) bool {
		fi, err := p.FS.Stat(p.Path(v.path))
		if err != nil || p.follow == 'L' {
			fi, err = p.FS.Lstat(p.Path(v.path))
		}
		return err == nil && strings.IndexByte(letters, letter(fi.Mode())) >= 0
	}, err
}

func (p *parser) perm(text string) (node, error) {
	how, mode := byte(0), text
	if text != "" && (text[0] == '-' || text[0] == '/') {
		how, mode = text[0], text[1:]
	}
	c, err := modes.Parse(mode)
	if err != nil {
		return nil, complain("invalid mode %s", gnu.Quote(text))
	}
	file, dir := c.Apply(0, false, 0), c.Apply(0, true, 0)
	if how == '/' && file == 0 {
		p.Complain("warning: you have specified a mode pattern %s (which is equivalent to /000). The meaning of -perm /000 has now been changed to be consistent with -perm -000; that is, while it used to match no files, it now matches all files.", text)
	}
	return func(v *visit) bool {
		want, has := file, modes.Of(v.fi.Mode())
		if v.fi.IsDir() {
			want = dir
		}
		switch how {
		case '-':
			return has&want == want
		case '/':
			return want == 0 || has&want != 0
		}
		return has == want
	}, nil
}

func (p *parser) owner(text, kind string, of func(*visit) uint32) (node, error) {
	id := uint64(inode.ID)
	if text != inode.User {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			if text == "" {
				return nil, complain("The argument to -%s should not be empty", kind)
			}
			if text == "root" {
				n, err = 0, nil
			}
		}
		if err != nil {
			return nil, map[string]error{
				"user": complain("%s is not the name of a known user", gnu.Quote(text)), "group": complain("%s is not the name of an existing group", gnu.Quote(text)),
			}[kind]
		}
		id = n
	}
	return func(v *visit) bool { return uint64(of(v)) == id }, nil
}

func (p *parser) user(text string) (node, error) {
	return p.owner(text, "user", func(v *visit) uint32 { return v.node.UID })
}

func (p *parser) ownerGroup(text string) (node, error) {
	return p.owner(text, "group", func(v *visit) uint32 { return v.node.GID })
}

// reference asks about a file that others are compared with.
func (p *parser) reference(name string) (fs.FileInfo, error) {
	fi, err := p.FS.Lstat(p.Path(name))
	if err == nil && p.follow != 'P' {
		if to, e := p.FS.Stat(p.Path(name)); e == nil {
			fi = to
		}
	}
	if err != nil || name == "" {
		return nil, complain("%s: %s", gnu.Quote(name), command.Reason(err))
	}
	return fi, nil
}

func (p *parser) same(name string) (node, error) {
	fi, err := p.reference(name)
	return func(v *visit) bool { return inode.Same(fi, v.fi) }, err
}

func (p *parser) newer(xy, text string) (node, error) {
	if strings.Contains(xy, "B") {
		return nil, complain("This system does not provide a way to find the birth time of a file.")
	}
	var than time.Time
	if xy[1] == 't' {
		t, err := date.Parse(text, p.now.In(p.zone))
		if err != nil {
			return nil, complain("I cannot figure out how to interpret %s as a date or time", gnu.Quote(text))
		}
		than = t
	} else {
		fi, err := p.reference(text)
		if err != nil {
			return nil, err
		}
		than = (&visit{node: inode.Of(fi)}).time(xy[1])
	}
	return func(v *visit) bool { return v.time(xy[0]).After(than) }, nil
}

func (p *parser) fileSystem(name string) (node, error) {
	return func(v *visit) bool { return p.fsType(v.path) == name }, nil
}

// fsType is a word for the file system that a name is on.
func (s *search) fsType(name string) string {
	p, err := s.FS.Resolve(s.Path(name))
	switch {
	case err == nil && (p == "/tmp" || strings.HasPrefix(p, "/tmp/")):
		return "tmpfs"
	case err == nil && (p == "/dev" || strings.HasPrefix(p, "/dev/")):
		return "devtmpfs"
	}
	return "hermetic"
}
