package find

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/date"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
	"egressd/hermetic/internal/modes"
)

func (s *search) print() node {
	return func(v *visit) bool {
		_, _ = s.Out.WriteString(v.path)
		_ = s.Out.WriteByte('\n')
		return true
	}
}

func (p *parser) simpleAction(name string) node {
	p.acts = true
	switch name {
	case "-print0":
		return p.printTo(p.Out, "\x00")
	case "-ls":
		return p.listLong(p.Out)
	case "-delete":
		p.depth = true
		return p.remove
	}
	return p.print()
}

func (p *parser) printTo(w io.Writer, end string) node {
	return func(v *visit) bool {
		_, _ = io.WriteString(w, v.path+end)
		return true
	}
}

func (s *search) remove(v *visit) bool {
	if v.path == "." {
		return true
	}
	if err := s.FS.Remove(s.Path(v.path)); err != nil {
		s.Fault("cannot delete %s: %s", gnu.Quote(v.path), command.Reason(err))
		return false
	}
	return true
}

const halfYear = 31556952 / 2 * time.Second

// listLong is -ls.
func (p *parser) listLong(w io.Writer) node {
	return func(v *visit) bool {
		format := "%b %e  %Y"
		if t := v.node.Mtime; t.After(p.now.Add(-halfYear)) && !t.After(p.now.Add(time.Hour)) {
			format = "%b %e %H:%M"
		}
		name := escapeName(v.path)
		if v.fi.Mode()&fs.ModeSymlink != 0 {
			if t, err := p.FS.Readlink(p.Path(v.path)); err == nil {
				name += " -> " + escapeName(t)
			}
		}
		size := fmt.Sprintf("%8d", v.node.Size)
		if v.fi.Mode()&fs.ModeDevice != 0 {
			size = fmt.Sprintf("%3d, %3d", inode.Major(v.node.Rdev), inode.Minor(v.node.Rdev))
		}
		fmt.Fprintf(w, "%9d %6d %s %3d %-8s %-8s %s %s %s\n", v.node.Ino, (v.node.Blocks+1)/2, modes.String(v.fi.Mode()), v.node.Links,
			inode.Name(v.node.UID), inode.Name(v.node.GID), size, date.Format(format, v.node.Mtime.In(p.zone)), name)
		return true
	}
}

// escapeName writes a name as -ls does: blanks and what is not printable with
// a backslash.
func escapeName(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\\' || c == ' ' || c == '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case strings.IndexByte("\a\b\f\n\r\t\v", c) >= 0:
			b.WriteString(`\` + string("abfnrtv"[strings.IndexByte("\a\b\f\n\r\t\v", c)]))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// action are actions with arguments.
func (p *parser) action(name string) (node, bool, error) {
	switch name {
	case "-exec", "-execdir", "-ok", "-okdir":
		p.acts = true
		n, err := p.exec(name)
		return n, true, err
	case "-printf":
		p.acts = true
		format, err := p.value(name)
		if err != nil {
			return nil, true, err
		}
		n, err := p.printf(p.Out, format)
		return n, true, err
	case "-fprint", "-fprint0", "-fls", "-fprintf":
	default:
		return nil, false, nil
	}
	p.acts = true
	file, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	w, err := p.output(file)
	if err != nil {
		return nil, true, err
	}
	switch name {
	case "-fprint":
		return p.printTo(w, "\n"), true, nil
	case "-fprint0":
		return p.printTo(w, "\x00"), true, nil
	case "-fls":
		return p.listLong(w), true, nil
	}
	format, err := p.value(name)
	if err != nil {
		return nil, true, err
	}
	n, err := p.printf(w, format)
	return n, true, err
}

// batch collects names for -exec … +.
type batch struct {
	s     *search
	words []string
	inDir bool
	dir   string
	names []string
	size  int
}

// maxBatch is how many bytes of names one command gets.
const maxBatch = 128 << 10

func (b *batch) add(dir, name string) {
	if len(b.names) > 0 && (b.size+len(name)+1 > maxBatch || b.dir != dir) {
		b.flush()
	}
	b.dir, b.names, b.size = dir, append(b.names, name), b.size+len(name)+1
}

func (b *batch) flush() {
	if len(b.names) == 0 || b.s.Ctx.Err() != nil {
		return
	}
	args := append(append([]string{}, b.words...), b.names...)
	b.names, b.size = nil, 0
	if b.s.run(b.dir, args, nil) != 0 {
		b.s.Status = 1
	}
}

// run runs one command in a directory.
func (s *search) run(dir string, args []string, in io.Reader) int {
	_ = s.Out.Flush()
	if _, ok := s.Find(dir, args[0]); !ok {
		s.Complain("%s: No such file or directory", gnu.Quote(args[0]))
		return 127
	}
	c := s.With(args, in, nil, nil)
	c.Dir = dir
	return s.Exec(s.Ctx, c)
}

// exec reads the command of -exec, -ok and their like.
func (p *parser) exec(name string) (node, error) {
	inDir, ask := strings.HasSuffix(name, "dir"), strings.HasPrefix(name, "-ok")
	var words []string
	braces := 0
	for ; ; p.at++ {
		if p.at >= len(p.args) {
			return nil, complain("missing argument to `%s'", name)
		}
		a := p.args[p.at]
		if a == ";" {
			break
		}
		if a == "+" && !ask && len(words) > 0 && words[len(words)-1] == "{}" {
			p.at++
			if braces > 1 {
				return nil, complain("Only one instance of {} is supported with %s ... +", name)
			}
			return p.execMany(words[:len(words)-1], inDir), nil
		}
		if strings.Contains(a, "{}") {
			braces++
		}
		words = append(words, a)
	}
	p.at++
	if len(words) == 0 {
		return nil, complain("invalid argument `;' to `%s'", name)
	}
	return p.execOne(words, inDir, ask), nil
}

func (p *parser) execMany(words []string, inDir bool) node {
	b := &batch{s: p.search, words: words, inDir: inDir}
	p.batches = append(p.batches, b)
	return func(v *visit) bool {
		dir, name := p.place(v, inDir)
		b.add(dir, name)
		return true
	}
}

// place is where a command for v runs, and how it is told of v.
func (p *parser) place(v *visit, inDir bool) (dir, name string) {
	if !inDir {
		return p.Dir, v.path
	}
	base := v.base()
	if base == "/" {
		return "/", "/"
	}
	dir = strings.TrimSuffix(strings.TrimRight(v.path, "/"), base)
	if dir == "" {
		dir = "."
	}
	if to, err := p.FS.Resolve(p.Path(dir)); err == nil {
		return to, "./" + base
	}
	return p.Dir, "./" + base
}

func (p *parser) execOne(words []string, inDir, ask bool) node {
	var stdin *bufio.Reader
	return func(v *visit) bool {
		dir, name := p.place(v, inDir)
		args := make([]string, len(words))
		for i, w := range words {
			args[i] = strings.ReplaceAll(w, "{}", name)
		}
		var in io.Reader
		if ask {
			_ = p.Out.Flush()
			fmt.Fprintf(p.Stderr, "< %s ... %s > ? ", args[0], v.path)
			if stdin == nil {
				stdin = bufio.NewReader(p.Stdin)
			}
			line, _ := stdin.ReadString('\n')
			if !strings.HasPrefix(line, "y") && !strings.HasPrefix(line, "Y") {
				return false
			}
			in = strings.NewReader("")
		}
		return p.run(dir, args, in) == 0
	}
}
