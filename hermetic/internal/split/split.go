package split

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type splitter struct {
	mode    byte // 'l', 'b', 'C' or 'n'
	n       int64
	chunk   int64 // -n K/N: only that one, on the standard output
	lines   bool  // -n l/N
	round   bool  // -n r/N
	digits  string
	start   int64
	length  int
	fixed   bool // -a was given
	suffix  string
	prefix  string
	sep     byte
	elide   bool
	verbose bool

	files int64
	out   io.WriteCloser
}

func split(w *gnu.Work) {
	w.Args = foldDigits(w.Args, "-l")
	sets, operands, ok := w.Options("[OPTION]... [FILE [PREFIX]]", "a:,suffix-length: ,additional-suffix: b:,bytes: C:,line-bytes: d ,numeric-suffixes:: x ,hex-suffixes:: e,elide-empty-files ,filter: l:,lines: n:,number: t:,separator: u,unbuffered ,verbose")
	if !ok {
		return
	}
	s := splitter{mode: 'l', n: 1000, length: 2, prefix: "x", sep: '\n', digits: "abcdefghijklmnopqrstuvwxyz"}
	for i, o := range sets {
		if !s.set(w, o, i > 0 && s.changed(sets[:i], o)) {
			return
		}
	}
	if w.Extra(operands, 2) {
		return
	}
	if len(operands) > 1 {
		s.prefix = operands[1]
	}
	name := "-"
	if len(operands) > 0 {
		name = operands[0]
	}
	if s.mode == 'n' && !s.fixed {
		for n := s.n + s.start; n > pow(int64(len(s.digits)), s.length); {
			s.length++
		}
	}
	r, err := w.Open(name)
	if err != nil {
		w.Die(1, "cannot open %s for reading: %s", gnu.QuoteShell(name), command.Reason(err))
		return
	}
	defer r.Close()
	defer func() {
		if s.out != nil {
			_ = s.out.Close()
		}
	}()
	if err := s.run(w, r); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errSplit) && w.Ctx.Err() == nil {
		w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
	}
}

// errSplit: a complaint was made.
var errSplit = errors.New("stop")

func pow(base int64, n int) int64 {
	out := int64(1)
	for range n {
		if out *= base; out > 1<<40 {
			break
		}
	}
	return out
}

// foldDigits turns "-20" into option+"20".
func foldDigits(args []string, option string) []string {
	out := append([]string{}, args...)
	for i, a := range out {
		if a == "--" {
			break
		}
		if i > 0 && len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" && (len(out[i-1]) != 2 || strings.IndexByte("abClnt", out[i-1][1]) < 0) {
			out[i] = option + a[1:]
		}
	}
	return out
}

// changed reports whether a second way to split is asked for.
func (s *splitter) changed(before []command.Set, o command.Set) bool {
	ways := "bytes line-bytes lines number"
	if !strings.Contains(ways, o.Name) {
		return false
	}
	for _, b := range before {
		if strings.Contains(ways, b.Name) {
			return true
		}
	}
	return false
}

func (s *splitter) set(w *gnu.Work, o command.Set, twice bool) bool {
	if twice {
		w.TryHelp("cannot split in more than one way")
		return false
	}
	size := func(mode byte, what string) bool {
		n, err := gnu.Size(o.Value, "bEGKkMmPTYZ0")
		if err != nil && !errors.Is(err, gnu.ErrOverflow) || n == 0 {
			w.Die(1, "invalid number of %s: %s%s", what, gnu.Quote(o.Value), outOfRange(err == nil))
			return false
		}
		s.mode, s.n = mode, n
		return true
	}
	numbers := func(digits string, base int) bool {
		s.digits = digits
		if !o.Given {
			return true
		}
		n, err := strconv.ParseInt(o.Value, base, 62)
		if err != nil || n < 0 {
			w.TryHelp("%s: invalid start value for numerical suffix", o.Value)
			return false
		}
		s.start = n
		return true
	}
	switch o.Name {
	case "suffix-length":
		n, err := strconv.ParseUint(o.Value, 10, 8)
		if err != nil {
			w.Die(1, "invalid suffix length: %s", gnu.Quote(o.Value))
			return false
		}
		if n > 0 {
			s.length, s.fixed = int(n), true
		}
	case "additional-suffix":
		if strings.Contains(o.Value, "/") {
			w.TryHelp("invalid suffix %s, contains directory separator", gnu.QuoteShell(o.Value))
			return false
		}
		s.suffix = o.Value
	case "bytes":
		return size('b', "bytes")
	case "line-bytes":
		return size('C', "bytes")
	case "lines":
		return size('l', "lines")
	case "number":
		return s.setChunks(w, o.Value)
	case "d", "numeric-suffixes":
		return numbers("0123456789", 10)
	case "x", "hex-suffixes":
		return numbers("0123456789abcdef", 16)
	case "elide-empty-files":
		s.elide = true
	case "separator":
		switch {
		case o.Value == "":
			w.Die(1, "empty record separator")
			return false
		case o.Value == `\0`:
			s.sep = 0
		case len(o.Value) > 1:
			w.Die(1, "multi-character separator %s", gnu.Quote(o.Value))
			return false
		default:
			s.sep = o.Value[0]
		}
	case "verbose":
		s.verbose = true
	case "filter":
		w.Refuse("--filter")
		return false
	}
	return true
}

func outOfRange(yes bool) string {
	if yes {
		return ": Numerical result out of range"
	}
	return ""
}

// setChunks reads N, K/N, l/N, l/K/N, r/N and r/K/N.
func (s *splitter) setChunks(w *gnu.Work, value string) bool {
	s.mode = 'n'
	rest := value
	if r, ok := strings.CutPrefix(rest, "l/"); ok {
		s.lines, rest = true, r
	} else if r, ok := strings.CutPrefix(rest, "r/"); ok {
		s.round, rest = true, r
	}
	if k, n, ok := strings.Cut(rest, "/"); ok {
		c, err := strconv.ParseInt(k, 10, 62)
		if err != nil || c <= 0 {
			w.Die(1, "invalid chunk number: %s", gnu.Quote(k))
			return false
		}
		s.chunk, rest = c, n
	}
	n, err := strconv.ParseInt(rest, 10, 62)
	if err != nil || n <= 0 {
		w.Die(1, "invalid number of chunks: %s%s", gnu.Quote(rest), outOfRange(err == nil))
		return false
	}
	if s.chunk > n {
		w.Die(1, "invalid chunk number: %s", gnu.Quote(fmt.Sprint(s.chunk)))
		return false
	}
	s.n = n
	return true
}

func (s *splitter) run(w *gnu.Work, r io.Reader) error {
	switch s.mode {
	case 'b':
		return s.byBytes(w, bufio.NewReaderSize(r, 64<<10))
	case 'C':
		return s.byLineBytes(w, r)
	case 'n':
		return s.byChunks(w, r)
	}
	lines := w.Lines(r, s.sep)
	for n := int64(0); ; n++ {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		if n%s.n == 0 {
			if err := s.open(w); err != nil {
				return err
			}
		}
		if err := s.write(w, line); err != nil {
			return err
		}
	}
}

func (s *splitter) byBytes(w *gnu.Work, r *bufio.Reader) error {
	for {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		if err := s.open(w); err != nil {
			return err
		}
		if _, err := io.CopyN(s.out, r, s.n); err != nil {
			return err
		}
	}
}

// byLineBytes puts as many whole lines in a file as fit.
func (s *splitter) byLineBytes(w *gnu.Work, r io.Reader) error {
	lines := w.Lines(r, s.sep)
	left := int64(0)
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		if left < int64(len(line)) && left < s.n {
			left = 0
		}
		for len(line) > 0 {
			if left == 0 {
				if err := s.open(w); err != nil {
					return err
				}
				left = s.n
			}
			n := min(left, int64(len(line)))
			if err := s.write(w, line[:n]); err != nil {
				return err
			}
			line, left = line[n:], left-n
		}
	}
}

// byChunks makes n files of about one size.
func (s *splitter) byChunks(w *gnu.Work, r io.Reader) error {
	all, err := w.All(r)
	if err != nil {
		return err
	}
	if s.n > 1<<20 {
		w.Die(1, "%s", "output file suffixes exhausted")
		return errSplit
	}
	chunks := make([][]byte, s.n)
	switch {
	case s.round:
		for i := 0; len(all) > 0; i++ {
			n := lineEnd(all, s.sep)
			at := i % len(chunks)
			chunks[at] = append(chunks[at], all[:n]...)
			all = all[n:]
		}
	default:
		s.cut(all, chunks)
	}
	for i, c := range chunks {
		if s.chunk > 0 {
			if int64(i) == s.chunk-1 {
				w.Out.Write(c)
			}
			continue
		}
		if len(c) == 0 && s.elide {
			continue
		}
		if err := s.open(w); err != nil {
			return err
		}
		if err := s.write(w, c); err != nil {
			return err
		}
	}
	return nil
}

// cut divides all by size; with lines a chunk goes on to the end of its line.
func (s *splitter) cut(all []byte, chunks [][]byte) {
	n, size := int64(len(chunks)), int64(len(all))
	bound := func(i int64) int64 {
		if i == n {
			return size
		}
		return min(size, max(1, size/n)*i)
	}
	at := int64(0)
	for i := range chunks {
		end := bound(int64(i) + 1)
		if end <= at && s.lines {
			continue
		}
		if s.lines && end < size && all[end-1] != s.sep {
			end += int64(lineEnd(all[end:], s.sep))
		}
		chunks[i] = all[at:end]
		at = end
	}
}

func lineEnd(b []byte, sep byte) int {
	for i, c := range b {
		if c == sep {
			return i + 1
		}
	}
	return len(b)
}
