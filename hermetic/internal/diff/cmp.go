package diff

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

// comparer is one call of cmp.
type comparer struct {
	*gnu.Work
	all, silent, chars bool
	most               int64 // -n; -1: everything
	skip               [2]int64
	names              [2]string
}

func cmp(w *gnu.Work) {
	sets, operands, ok := Options(w, "[OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]",
		"b,print-bytes i:,ignore-initial: l,verbose n:,bytes: s,quiet ,silent")
	if !ok {
		return
	}
	c := &comparer{Work: w, most: -1}
	for _, o := range sets {
		if !c.set(o) {
			return
		}
	}
	switch {
	case c.all && c.silent:
		TryHelp(w, "options -l and -s are incompatible")
		return
	case len(operands) == 0:
		TryHelp(w, "missing operand after '%s'", w.Args[len(w.Args)-1])
		return
	case len(operands) > 4:
		TryHelp(w, "extra operand '%s'", operands[4])
		return
	}
	c.names = [2]string{operands[0], "-"}
	if len(operands) > 1 {
		c.names[1] = operands[1]
	}
	for i, o := range operands[min(2, len(operands)):] {
		if !c.skipTo(i, o) {
			return
		}
	}
	c.Status = c.run()
}

func (c *comparer) set(o command.Set) bool {
	switch o.Name {
	case "print-bytes":
		c.chars = true
	case "verbose":
		c.all = true
	case "quiet", "silent":
		c.silent = true
	case "bytes":
		n, err := gnu.Size(o.Value, "kKMGTPE")
		if err != nil || n < 0 {
			TryHelp(c.Work, "invalid --bytes value '%s'", o.Value)
			return false
		}
		if c.most < 0 || n < c.most {
			c.most = n
		}
	case "ignore-initial":
		a, b, two := strings.Cut(o.Value, ":")
		if !two {
			b = a
		}
		return c.skipTo(0, a) && c.skipTo(1, b)
	}
	return true
}

func (c *comparer) skipTo(i int, s string) bool {
	n, err := gnu.Size(s, "kKMGTPE")
	if err != nil || n < 0 {
		TryHelp(c.Work, "invalid --ignore-initial value '%s'", s)
		return false
	}
	c.skip[i] = max(c.skip[i], n)
	return true
}

func (c *comparer) run() int {
	var r [2]*bufio.Reader
	for i, name := range c.names {
		f, err := c.Open(name)
		if err != nil {
			if !c.silent {
				c.Complain("%s: %s", name, Reason(err))
			}
			return 2
		}
		defer f.Close()
		r[i] = bufio.NewReaderSize(f, 32<<10)
	}
	if c.sameFile() {
		return 0
	}
	for i, n := range c.skip {
		if _, err := io.CopyN(io.Discard, r[i], n); err != nil && !errors.Is(err, io.EOF) {
			return c.Die(2, "%s: %s", c.names[i], Reason(err))
		}
	}
	return c.bytes(r)
}

func (c *comparer) sameFile() bool {
	if c.names[0] == "-" || c.names[1] == "-" || c.skip[0] != c.skip[1] {
		return false
	}
	a, err1 := c.FS.Stat(c.Path(c.names[0]))
	b, err2 := c.FS.Stat(c.Path(c.names[1]))
	return err1 == nil && err2 == nil && a.Mode().IsRegular() && inode.Same(a, b)
}

// progress is where a comparison stands.
type progress struct {
	at, line int64
	last     byte
	differs  bool
}

func (c *comparer) bytes(r [2]*bufio.Reader) int {
	p := progress{line: 1}
	for c.most < 0 || p.at < c.most {
		x, err1 := r[0].Peek(1)
		y, err2 := r[1].Peek(1)
		for i, err := range []error{err1, err2} {
			if err != nil && !errors.Is(err, io.EOF) {
				return c.Die(2, "%s: %s", c.names[i], Reason(err))
			}
		}
		switch {
		case len(x) == 0 && len(y) == 0:
			return p.status()
		case len(x) == 0:
			return c.ended(0, p)
		case len(y) == 0:
			return c.ended(1, p)
		}
		if c.skipSame(r, &p) {
			continue
		}
		if !c.differ(r, &p) {
			return 1
		}
	}
	return p.status()
}

func (p *progress) status() int {
	if p.differs {
		return 1
	}
	return 0
}

// skipSame passes what is buffered on both sides and equal; false: the next
// bytes differ.
func (c *comparer) skipSame(r [2]*bufio.Reader, p *progress) bool {
	n := min(r[0].Buffered(), r[1].Buffered())
	if c.most >= 0 {
		n = int(min(int64(n), c.most-p.at))
	}
	a, _ := r[0].Peek(n)
	b, _ := r[1].Peek(n)
	same := n
	if !bytes.Equal(a, b) {
		same = 0
		for a[same] == b[same] {
			same++
		}
	}
	if same == 0 {
		return false
	}
	p.at += int64(same)
	p.line += int64(bytes.Count(a[:same], []byte{'\n'}))
	p.last = a[same-1]
	_, _ = r[0].Discard(same)
	_, _ = r[1].Discard(same)
	return true
}

// differ tells of one byte; false: that is enough.
func (c *comparer) differ(r [2]*bufio.Reader, p *progress) bool {
	x, _ := r[0].ReadByte()
	y, _ := r[1].ReadByte()
	p.at++
	p.differs = true
	switch {
	case c.silent:
		return false
	case c.all && c.chars:
		Writef(c.Out, "%*d %3o %-4s %3o %s\n", c.width(), p.at, x, visible(x), y, visible(y))
	case c.all:
		Writef(c.Out, "%*d %3o %3o\n", c.width(), p.at, x, y)
	case c.chars:
		Writef(c.Out, "%s %s differ: byte %d, line %d is %3o %s %3o %s\n", c.names[0], c.names[1], p.at, p.line, x, visible(x), y, visible(y))
	default:
		Writef(c.Out, "%s %s differ: byte %d, line %d\n", c.names[0], c.names[1], p.at, p.line)
	}
	p.last = x
	if x == '\n' {
		p.line++
	}
	return c.all && c.Ctx.Err() == nil
}

// width is how wide -l writes positions: as wide as the shorter file needs.
func (c *comparer) width() int {
	size := int64(-1)
	for i, n := range c.names {
		if info, err := c.FS.Stat(c.Path(n)); n != "-" && err == nil && info.Mode().IsRegular() {
			if s := info.Size() - c.skip[i]; size < 0 || s < size {
				size = s
			}
		}
	}
	if size < 0 {
		size = 1<<63 - 1
	}
	if c.most >= 0 {
		size = min(size, c.most)
	}
	return len(fmt.Sprint(size))
}

// ended tells that one side is a beginning of the other.
func (c *comparer) ended(side int, p progress) int {
	if c.silent {
		return 1
	}
	switch {
	case p.at == 0:
		c.Complain("EOF on %s which is empty", c.names[side])
	case c.all:
		c.Complain("EOF on %s after byte %d", c.names[side], p.at)
	case p.last == '\n':
		c.Complain("EOF on %s after byte %d, line %d", c.names[side], p.at, p.line-1)
	default:
		c.Complain("EOF on %s after byte %d, in line %d", c.names[side], p.at, p.line)
	}
	return 1
}

// visible is a byte as cat -v shows it.
func visible(b byte) string {
	s := ""
	if b >= 128 {
		s, b = "M-", b-128
	}
	switch {
	case b == 127:
		return s + "^?"
	case b < ' ':
		return s + "^" + string(rune(b+'@'))
	}
	return s + string(rune(b))
}
