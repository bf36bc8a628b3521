package head

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// ends is what head and tail share: how much, of what, and with which headers.
type ends struct {
	n       int64
	bytes   bool
	flipped bool // head: all but the last n; tail: from the n-th on
	delim   byte
	headers byte // 'q', 'v' or 0: when there are several files
	several bool
	printed bool
}

func head(w *gnu.Work) {
	e := ends{n: 10, delim: '\n'}
	if !e.obsolete(w, "head") {
		return
	}
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "c:,bytes: n:,lines: q,quiet ,silent v,verbose z,zero-terminated")
	if !ok {
		return
	}
	for _, o := range sets {
		switch o.Name {
		case "bytes", "lines":
			e.bytes = o.Name == "bytes"
			value, flipped := strings.CutPrefix(o.Value, "-")
			if !flipped && len(value) > 1 && value[1] >= '0' && value[1] <= '9' {
				value = strings.TrimPrefix(value, "+")
			}
			if e.flipped = flipped; !e.count(w, value, o.Value) {
				return
			}
		case "quiet", "silent":
			e.headers = 'q'
		case "verbose":
			e.headers = 'v'
		case "zero-terminated":
			e.delim = 0
		}
	}
	e.several = len(operands) > 1
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		if !e.headFile(w, name) {
			return
		}
	}
}

// count reads how many; the message has the text as it was given.
func (e *ends) count(w *gnu.Work, value, given string) bool {
	n, err := gnu.Size(value, "bkKmMGTPEZY0")
	e.n = n
	if err == nil || errors.Is(err, gnu.ErrOverflow) {
		return true
	}
	what := "lines"
	if e.bytes {
		what = "bytes"
	}
	if w.Args[0] == "head" {
		given = value
	}
	w.Die(1, "invalid number of %s: %s", what, gnu.Quote(given))
	return false
}

// obsolete takes "-5", "-5c" and the like from the first argument. It reports
// false after a complaint.
func (e *ends) obsolete(w *gnu.Work, tool string) bool {
	if len(w.Args) < 2 {
		return true
	}
	a := w.Args[1]
	sign := strings.IndexByte("-+", append([]byte(a), 0)[0])
	if sign < 0 || len(a) < 2 || a[1] < '0' || a[1] > '9' || sign == 1 && tool == "head" {
		return true
	}
	invalid := func() bool {
		if sign == 0 {
			w.Die(1, "option used in invalid context -- %c", a[1])
		}
		return sign == 1
	}
	n := len(w.Args)
	if tool == "tail" && n > 2 && (n > 4 || (n > 3 || len(w.Args[2]) > 1 && w.Args[2][0] == '-') && w.Args[2] != "--") {
		return invalid()
	}
	digits := len(a) - len(strings.TrimLeft(a[1:], "0123456789"))
	value, letters := a[1:digits], a[digits:]
	args := []string{w.Args[0], "-n"}
	for _, c := range letters {
		switch {
		case c == 'c':
			args[1] = "-c"
		case c == 'l' && tool == "tail":
			args[1] = "-n"
		case strings.ContainsRune("bkm", c) && tool == "head" || c == 'b' && tool == "tail":
			args[1] = "-c"
			value += string(c)
		case c == 'f' && tool == "tail" || strings.ContainsRune("qvz", c) && tool == "head":
			args = append(args, "-"+string(c))
		default:
			if tool == "tail" {
				return invalid()
			}
			w.TryHelp("invalid trailing option -- %c", c)
			return false
		}
	}
	if sign == 1 {
		value = "+" + value
	}
	args = append([]string{args[0], args[1] + value}, args[2:]...)
	w.Args = append(args, w.Args[2:]...)
	return true
}

// header writes the line above a file where it is wanted.
func (e *ends) header(w *gnu.Work, name string) {
	if e.headers == 'q' || e.headers == 0 && !e.several {
		return
	}
	if name == "-" {
		name = "standard input"
	}
	if e.printed {
		w.Out.WriteByte('\n')
	}
	e.printed = true
	w.Out.WriteString("==> " + name + " <==\n")
}

func (e *ends) headFile(w *gnu.Work, name string) bool {
	r, err := w.Open(name)
	if err != nil {
		w.Fault("cannot open %s for reading: %s", gnu.QuoteShell(name), command.Reason(err))
		return true
	}
	defer r.Close()
	e.header(w, name)
	br := bufio.NewReaderSize(r, 32<<10)
	left := int64(0) // bytes that were read and not printed
	switch {
	case e.bytes && e.flipped:
		err = butLastBytes(w, br, e.n, &left)
	case e.bytes:
		_, err = io.CopyN(w.Out, br, e.n)
	case e.flipped:
		err = butLastLines(w, br, e.n, e.delim, &left)
	default:
		err = firstLines(w, br, e.n, e.delim)
	}
	if name == "-" {
		giveBack(w, left+int64(br.Buffered()))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if _, werr := w.Out.Write(nil); werr != nil || w.Ctx.Err() != nil {
			return false
		}
		if name == "-" {
			name = "standard input"
		}
		w.Fault("error reading %s: %s", gnu.QuoteShell(name), command.Reason(err))
	}
	return true
}

// giveBack moves a standard input that can seek back by n bytes that were not
// used, for the next command that reads it.
func giveBack(w *gnu.Work, n int64) {
	if s, ok := w.Stdin.(io.Seeker); ok && n > 0 {
		_, _ = s.Seek(-n, io.SeekCurrent)
	}
}

func firstLines(w *gnu.Work, br *bufio.Reader, n int64, delim byte) error {
	for n > 0 {
		part, err := br.ReadSlice(delim)
		if _, werr := w.Out.Write(part); werr != nil {
			return werr
		}
		switch {
		case err == nil:
			n--
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}

func butLastLines(w *gnu.Work, br *bufio.Reader, n int64, delim byte, left *int64) error {
	held := lineRing{most: w.Most(), n: n}
	lines := w.Lines(br, delim)
	for {
		line, err := lines.Next()
		if err != nil {
			held.each(func(b []byte) { *left += int64(len(b)) })
			return err
		}
		out, err := held.push(line)
		if err != nil {
			return err
		}
		if _, err := w.Out.Write(out); err != nil {
			return err
		}
	}
}

func butLastBytes(w *gnu.Work, br *bufio.Reader, n int64, left *int64) error {
	var held []byte
	buf := make([]byte, 32<<10)
	for {
		k, err := br.Read(buf)
		held = append(held, buf[:k]...)
		if over := int64(len(held)) - n; over > 0 && (over >= 1<<20 || over >= n || err != nil) {
			if _, err := w.Out.Write(held[:over]); err != nil {
				return err
			}
			held = append(held[:0], held[over:]...)
		}
		if int64(len(held)) > w.Most() {
			return gnu.ErrMemory
		}
		if err != nil {
			*left = int64(len(held))
			return err
		}
	}
}

// lineRing holds the last n lines.
type lineRing struct {
	most, n, size int64
	lines         [][]byte
	at            int
}

// push adds a line and returns the one that fell out, nil while none does.
func (r *lineRing) push(line []byte) ([]byte, error) {
	if r.n == 0 {
		return line, nil
	}
	r.size += int64(len(line)) + 24
	if r.size > r.most {
		return nil, gnu.ErrMemory
	}
	if int64(len(r.lines)) < r.n {
		r.lines = append(r.lines, append([]byte(nil), line...))
		return nil, nil
	}
	old := r.lines[r.at]
	r.size -= int64(len(old)) + 24
	r.lines[r.at] = append([]byte(nil), line...)
	r.at = (r.at + 1) % len(r.lines)
	return old, nil
}

// each calls f with the lines, oldest first.
func (r *lineRing) each(f func([]byte)) {
	for i := range r.lines {
		f(r.lines[(r.at+i)%len(r.lines)])
	}
}
