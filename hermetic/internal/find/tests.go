package find

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/regex"
	"egressd/hermetic/internal/shell/pattern"
)

// plain are tests and actions without an argument.
func (p *parser) plain(name string) (node, bool, error) {
	switch name {
	case "-true":
		return always, true, nil
	case "-false":
		return func(*visit) bool { return false }, true, nil
	case "-empty":
		return p.empty, true, nil
	case "-readable", "-writable", "-executable":
		mode := map[string]uint32{"-readable": 4, "-writable": 2, "-executable": 1}[name]
		return func(v *visit) bool { return p.FS.Access(p.Path(v.path), mode) == nil }, true, nil
	case "-nouser", "-nogroup":
		return func(v *visit) bool { return v.node.UID != inode.ID }, true, nil
	case "-prune":
		return func(v *visit) bool { v.prune = true; return true }, true, nil
	case "-quit":
		return func(*visit) bool { p.quit = true; return true }, true, nil
	case "-print", "-print0", "-ls", "-delete":
		return p.simpleAction(name), true, nil
	}
	return nil, false, nil
}

func (s *search) empty(v *visit) bool {
	if v.fi.IsDir() {
		list, err := s.FS.ReadDir(s.Path(v.path))
		if err != nil {
			s.Fault("%s: %s", gnu.Quote(v.path), command.Reason(err))
		}
		return err == nil && len(list) == 0
	}
	return v.fi.Mode().IsRegular() && v.fi.Size() == 0
}

// nameTest are tests that match text.
func (p *parser) nameTest(name string) (node, bool, error) {
	bare := strings.TrimPrefix(name, "-")
	fold := strings.HasPrefix(bare, "i") && bare != "inum"
	if fold {
		bare = bare[1:]
	}
	switch bare {
	case "name", "path", "wholename", "lname", "regex":
	default:
		return nil, false, nil
	}
	v, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	if bare == "regex" {
		n, err := p.regex(v, fold)
		return n, true, err
	}
	pat := pattern.Compile(v, pattern.Options{Fold: fold})
	switch bare {
	case "name":
		return func(v *visit) bool { return pat.Match(v.base()) }, true, nil
	case "lname":
		return func(v *visit) bool {
			if v.fi.Mode()&fs.ModeSymlink == 0 {
				return false
			}
			t, err := p.FS.Readlink(p.Path(v.path))
			return err == nil && pat.Match(t)
		}, true, nil
	}
	return func(v *visit) bool { return pat.Match(v.path) }, true, nil
}

func (p *parser) regex(expr string, fold bool) (node, error) {
	re, err := regex.Compile(expr, regex.Options{Syntax: p.syntax, Fold: fold, Steps: p.Budget.Steps})
	if err != nil {
		return nil, fmt.Errorf("failed to compile regular expression '%s': %w", expr, err)
	}
	return func(v *visit) bool {
		from, to, err := re.Span([]byte(v.path), 0, 0)
		return err == nil && from == 0 && to == len(v.path)
	}, nil
}

// comparison is +n, n or -n.
type comparison struct {
	sign byte // '+', '-' or 0
	n    float64
}

func (c comparison) holds(x float64) bool {
	switch c.sign {
	case '+':
		return x > c.n
	case '-':
		return x < c.n
	}
	return x == c.n
}

func parseComparison(s string, fraction bool) (c comparison, ok bool) {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		c.sign, s = s[0], s[1:]
	}
	if s == "" || strings.Trim(s, "0123456789.") != "" || !fraction && strings.Contains(s, ".") {
		return c, false
	}
	n, err := strconv.ParseFloat(s, 64)
	c.n = n
	return c, err == nil
}

// numberTest are tests that compare a number.
func (p *parser) numberTest(name string) (node, bool, error) {
	var of func(*visit) float64
	day, minute := 24*time.Hour, time.Minute
	switch name {
	case "-inum":
		of = func(v *visit) float64 { return float64(v.node.Ino) }
	case "-links":
		of = func(v *visit) float64 { return float64(v.node.Links) }
	case "-uid":
		of = func(v *visit) float64 { return float64(v.node.UID) }
	case "-gid":
		of = func(v *visit) float64 { return float64(v.node.GID) }
	case "-mtime", "-atime", "-ctime":
		return p.age(name, day)
	case "-mmin", "-amin", "-cmin":
		return p.age(name, minute)
	case "-used":
		of = func(v *visit) float64 { return math.Ceil(v.node.Atime.Sub(v.node.Ctime).Hours() / 24) }
	case "-size":
		n, err := p.size(name)
		return n, true, err
	default:
		return nil, false, nil
	}
	text, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	c, ok := parseComparison(text, false)
	if !ok {
		return nil, true, complain("invalid argument `%s' to `%s'", text, name)
	}
	return func(v *visit) bool { return c.holds(of(v)) }, true, nil
}

func (v *visit) time(which byte) time.Time {
	switch which {
	case 'a':
		return v.node.Atime
	case 'c':
		return v.node.Ctime
	}
	return v.node.Mtime
}

// age compares how long ago a time is, in whole units.
func (p *parser) age(name string, unit time.Duration) (node, bool, error) {
	text, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	c, ok := parseComparison(text, true)
	if !ok {
		return nil, true, complain("invalid argument `%s' to `%s'", text, name)
	}
	from := p.now
	if p.daystart {
		y, m, d := from.In(p.zone).Date()
		from = time.Date(y, m, d+1, 0, 0, 0, 0, p.zone)
	}
	return func(v *visit) bool {
		old := float64(from.Sub(v.time(name[1]))) / float64(unit)
		switch {
		case c.sign == '-':
			return old < c.n
		case unit == time.Minute && c.sign == '+':
			return old > c.n
		case unit == time.Minute:
			return old >= c.n-1 && old < c.n
		case c.sign == '+':
			return old >= c.n+1
		}
		return old >= c.n && old < c.n+1
	}, true, nil
}

func (p *parser) size(name string) (node, error) {
	text, err := p.value(name)
	if err != nil {
		return nil, err
	}
	unit := float64(512)
	number := text
	if n := len(text); n > 0 {
		units := map[byte]float64{'b': 512, 'c': 1, 'w': 2, 'k': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
		if u, ok := units[text[n-1]]; ok {
			unit, number = u, text[:n-1]
		} else if !strings.ContainsRune("0123456789", rune(text[n-1])) {
			return nil, complain("invalid -size type `%c'", text[n-1])
		}
	}
	c, ok := parseComparison(number, false)
	if !ok {
		return nil, complain("Invalid argument `%s' to -size", text)
	}
	return func(v *visit) bool { return c.holds(math.Ceil(float64(v.fi.Size()) / unit)) }, nil
}
