package head

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// counts are what wc counts of one file.
type counts struct {
	lines, words, chars, bytes, longest int64

	column int64
	word   bool
}

type wcShow struct {
	lines, words, chars, bytes, longest bool
	width                               int
}

func wc(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "c,bytes l,lines L,max-line-length m,chars w,words ,files0-from: ,debug")
	if !ok {
		return
	}
	var s wcShow
	from := ""
	for _, o := range sets {
		switch o.Name {
		case "bytes":
			s.bytes = true
		case "lines":
			s.lines = true
		case "max-line-length":
			s.longest = true
		case "chars":
			s.chars = true
		case "words":
			s.words = true
		case "files0-from":
			from = o.Value
		}
	}
	if s == (wcShow{}) {
		s.lines, s.words, s.bytes = true, true, true
	}
	named := len(operands) > 0
	if from != "" {
		if named {
			w.TryHelp("extra operand %s\nfile operands cannot be combined with --files0-from", gnu.Quote(operands[0]))
			return
		}
		if operands, named = wcNames(w, from), true; len(operands) == 0 {
			return
		}
	}
	if !named {
		operands = []string{"-"}
	}
	s.width = s.columnWidth(w, operands)
	if from != "" {
		if info, err := wcStat(w, from); err == nil && (info == nil || !info.Mode().IsRegular()) {
			s.width = 1
		}
	}
	var total counts
	for _, name := range operands {
		c, ok := wcFile(w, name, &s)
		if !ok {
			continue
		}
		total.add(c)
		if !named {
			name = ""
		}
		s.print(w, c, name)
	}
	if len(operands) > 1 {
		s.print(w, total, "total")
	}
}

// wcNames reads the names of --files0-from.
func wcNames(w *gnu.Work, from string) []string {
	r, err := w.Open(from)
	if err != nil {
		w.Die(1, "cannot open %s for reading: %s", gnu.QuoteShell(from), command.Reason(err))
		return nil
	}
	defer r.Close()
	all, err := w.All(r)
	if err != nil {
		w.Fault("%s: read error: %s", from, command.Reason(err))
	}
	var names []string
	for i, n := range strings.Split(strings.TrimSuffix(string(all), "\x00"), "\x00") {
		if n == "" {
			w.Fault("%s:%d: invalid zero-length file name", from, i+1)
			continue
		}
		names = append(names, n)
	}
	return names
}

// columnWidth is how wide numbers are: as the sizes of regular files ask, 7
// with another kind of file, 1 for one number of one file.
func (s *wcShow) columnWidth(w *gnu.Work, operands []string) int {
	shown := 0
	for _, on := range []bool{s.lines, s.words, s.chars, s.bytes, s.longest} {
		if on {
			shown++
		}
	}
	if len(operands) == 1 && shown == 1 {
		return 1
	}
	least, total := 1, int64(0)
	for _, name := range operands {
		info, err := wcStat(w, name)
		switch {
		case err != nil:
		case info == nil || !info.Mode().IsRegular():
			least = 7
		default:
			total += info.Size()
		}
	}
	return max(least, len(fmt.Sprint(total)))
}

func wcStat(w *gnu.Work, name string) (fs.FileInfo, error) {
	if name != "-" {
		return w.FS.Stat(w.Path(name))
	}
	if f, ok := w.Stdin.(interface{ Stat() (fs.FileInfo, error) }); ok {
		return f.Stat()
	}
	return nil, nil
}

func wcFile(w *gnu.Work, name string, s *wcShow) (counts, bool) {
	var c counts
	r, err := w.Open(name)
	if err != nil {
		w.Fault("%s: %s", gnu.QuoteName(name), command.Reason(err))
		return c, false
	}
	defer r.Close()
	buf := make([]byte, 64<<10)
	kept, full := 0, s.words || s.chars || s.longest
	for {
		n, err := r.Read(buf[kept:])
		data := buf[:kept+n]
		c.bytes += int64(n)
		if full {
			kept = copy(buf, c.count(data, err != nil))
		} else {
			c.countLines(data)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if w.Ctx.Err() == nil {
				w.Fault("%s: %s", gnu.QuoteName(name), command.Reason(err))
			}
			break
		}
	}
	if c.word {
		c.words++
	}
	c.longest = max(c.longest, c.column)
	return c, true
}

func (c *counts) countLines(data []byte) {
	for _, b := range data {
		if b == '\n' {
			c.lines++
		}
	}
}

// count takes in data and returns the part that may be the beginning of a
// character.
func (c *counts) count(data []byte, last bool) []byte {
	for len(data) > 0 {
		if !last && !utf8.FullRune(data) {
			return data
		}
		r, n := utf8.DecodeRune(data)
		data = data[n:]
		if r == utf8.RuneError && n == 1 {
			continue
		}
		c.chars++
		c.char(r)
	}
	return nil
}

func (c *counts) char(r rune) {
	space := true
	switch r {
	case '\n':
		c.lines++
		fallthrough
	case '\r', '\f':
		c.longest, c.column = max(c.longest, c.column), 0
	case '\t':
		c.column += 8 - c.column%8
	case ' ':
		c.column++
	case '\v':
	default:
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) || r == 0x85 {
			return
		}
		c.column += int64(gnu.Width(r))
		space = unicode.IsSpace(r) || r == 0x2060
	}
	if space && c.word {
		c.words++
	}
	c.word = !space
}

func (c *counts) add(d counts) {
	c.lines += d.lines
	c.words += d.words
	c.chars += d.chars
	c.bytes += d.bytes
	c.longest = max(c.longest, d.longest)
}

func (s *wcShow) print(w *gnu.Work, c counts, name string) {
	sep := ""
	for _, f := range []struct {
		on bool
		n  int64
	}{{s.lines, c.lines}, {s.words, c.words}, {s.chars, c.chars}, {s.bytes, c.bytes}, {s.longest, c.longest}} {
		if f.on {
			fmt.Fprintf(w.Out, "%s%*d", sep, s.width, f.n)
			sep = " "
		}
	}
	if name != "" {
		if strings.Contains(name, "\n") {
			name = gnu.QuoteName(name)
		}
		w.Out.WriteString(" " + name)
	}
	w.Out.WriteByte('\n')
}
