package grep

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"strconv"
	"unicode/utf8"
)

// chunk is how much of a file is read at once; grep looks for NUL bytes in as
// much before it prints anything.
const chunk = 96 << 10

var errMemory = errors.New("memory exhausted")

// scan is the search of one stream.
type scan struct {
	*search
	name string

	buf     []byte // what was read and not looked at
	eof     bool
	offset  int64 // of buf in the file
	number  int64 // of the last line that was taken
	count   int   // lines that are selected
	binary  bool
	hidden  bool // a line was selected that is not printed, the file being binary
	quit    bool
	history [][]byte // the last lines, for -B
	starts  []int64  // and where they begin
	kept    int      // bytes of them
	after   int      // lines of -A to come
	width   int      // of numbers, with -T
	headed  bool     // the name of the file was printed
	last    int64    // where the last selected line ends
	printed int64    // number of the last line printed
}

// run searches r to its end, or as far as is needed.
func (s *scan) run(r io.Reader) error {
	if s.o.tab {
		s.width = offsetWidth(r, s.o.lineNumber)
	}
	if seeker, ok := r.(io.Seeker); ok && s.o.max >= 0 {
		if from, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			defer s.leave(seeker, from)
		}
	}
	for !s.quit {
		lines, err := s.fill(r)
		if err != nil {
			return err
		}
		if len(lines) == 0 && s.eof {
			return nil
		}
		if err := s.lines(lines); err != nil {
			return err
		}
	}
	return nil
}

// offsetWidth is how wide -T makes numbers: as wide as the size of the file.
func offsetWidth(r io.Reader, lines bool) int {
	size := uint64(math.MaxInt64)
	if f, ok := r.(interface{ Stat() (fs.FileInfo, error) }); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = uint64(info.Size())
			if lines {
				size++
			}
		}
	}
	return len(strconv.FormatUint(size, 10))
}

// leave puts a file back to after the last line of -m, for who reads it next.
func (s *scan) leave(f io.Seeker, from int64) {
	if s.quit && s.full() {
		_, _ = f.Seek(from+s.last, io.SeekStart)
	}
}

func (s *scan) end() byte {
	if s.o.zero {
		return 0
	}
	return '\n'
}

// fill reads more, and gives what is whole lines of it; at the end, all.
func (s *scan) fill(r io.Reader) ([]byte, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	for !s.eof {
		from := len(s.buf)
		if int64(from) > s.c.Budget.Limits.Memory/4 {
			return nil, errMemory
		}
		s.buf = append(s.buf, make([]byte, max(chunk, from))...)
		n, err := io.ReadAtLeast(r, s.buf[from:], 1)
		s.buf = s.buf[:from+n]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			s.eof = true
		case err != nil:
			if s.ctx.Err() != nil {
				return nil, err
			}
			return nil, &readError{err}
		}
		s.judge(s.buf[from:])
		if at := bytes.LastIndexByte(s.buf[from:], s.end()); at >= 0 && !s.eof {
			return s.cut(from + at + 1), nil
		}
	}
	return s.cut(len(s.buf)), nil
}

// cut takes the first n bytes of the buffer.
func (s *scan) cut(n int) []byte {
	lines := s.buf[:n:n]
	s.buf = append([]byte(nil), s.buf[n:]...)
	return lines
}

// judge looks whether what was read is binary. Its NUL bytes end lines then.
func (s *scan) judge(b []byte) {
	if s.o.binary == "text" || s.o.zero {
		return
	}
	if !s.binary && bytes.IndexByte(b, 0) >= 0 {
		s.binary = true
		if s.o.binary == "without-match" {
			s.quit = true
		}
	}
	if s.binary {
		for i := range b {
			if b[i] == 0 {
				b[i] = '\n'
			}
		}
	}
}

// lines searches whole lines.
func (s *scan) lines(b []byte) error {
	for turn := 0; len(b) > 0 && !s.quit; turn++ {
		if turn%1024 == 1023 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		b = b[s.skip(b):]
		if len(b) == 0 {
			return nil
		}
		line, rest := b, b[len(b):]
		if at := bytes.IndexByte(b, s.end()); at >= 0 {
			line, rest = b[:at], b[at+1:]
		}
		s.number++
		if err := s.line(line); err != nil {
			return err
		}
		s.offset += int64(len(b) - len(rest))
		b = rest
	}
	return nil
}

// skip passes over lines that cannot match, when nothing is to be done with
// them but count.
func (s *scan) skip(b []byte) int {
	if len(s.m.needs) == 0 || s.o.invert || s.o.before > 0 || s.after > 0 {
		return 0
	}
	n := len(b)
	if at := bytes.Index(b, s.m.needs); at >= 0 {
		n = bytes.LastIndexByte(b[:at], s.end()) + 1
	}
	lines := bytes.Count(b[:n], []byte{s.end()})
	if n > 0 && b[n-1] != s.end() {
		lines++
	}
	s.number += int64(lines)
	s.offset += int64(n)
	return n
}

// line looks at one line.
func (s *scan) line(line []byte) error {
	if s.full() {
		return s.context(line)
	}
	start, end, err := s.m.next(line, 0)
	if err != nil {
		return err
	}
	if (start >= 0) == s.o.invert {
		return s.context(line)
	}
	s.count++
	defer func() {
		s.last = s.offset + int64(len(line)) + 1
		s.quit = s.quit || s.full() && s.after == 0
	}()
	switch {
	case s.o.quiet || s.o.list != 0:
		s.quit = true
		return nil
	case s.o.count:
		return nil
	case s.binary && s.o.binary != "text":
		s.hidden, s.quit = true, true
		return nil
	}
	s.leading(line)
	if !s.print(line, start, end, true) {
		return s.stop
	}
	s.after = s.o.after
	return s.stop
}

// full reports whether -m lets no more lines be selected: only the context of
// the last may follow.
func (s *scan) full() bool { return s.o.max >= 0 && s.count >= s.o.max }

// context keeps a line that is not selected, or prints it as context.
func (s *scan) context(line []byte) error {
	if s.after > 0 {
		s.after--
		s.print(line, -1, -1, false)
		s.quit = s.quit || s.full() && s.after == 0
		return s.stop
	}
	if s.o.before > 0 {
		if len(s.history) >= s.o.before {
			s.kept -= len(s.history[0])
			s.history, s.starts = s.history[1:], s.starts[1:]
		}
		if s.kept += len(line); int64(s.kept) > s.c.Budget.Limits.Memory/4 {
			return errMemory
		}
		s.history = append(s.history, line)
		s.starts = append(s.starts, s.offset)
	}
	return nil
}

// leading prints the lines of -B, and the separator where lines are left out.
func (s *scan) leading(line []byte) {
	if len(s.history) > 0 {
		line = s.history[0]
	}
	first := s.number - int64(len(s.history))
	if (s.o.before > 0 || s.o.after > 0) && s.out.lines && s.o.separate && (s.printed == 0 && !s.o.heading || s.printed > 0 && first > s.printed+1) && s.text(line) {
		s.out.separator(&s.o)
	}
	number, offset := s.number, s.offset
	for i, line := range s.history {
		s.number, s.offset = first+int64(i), s.starts[i]
		s.print(line, -1, -1, false)
	}
	s.number, s.offset = number, offset
	s.history, s.starts, s.kept = nil, nil, 0
}

// print writes one line, selected or not; a line that is not text is not
// printed, and the file is binary then.
func (s *scan) print(line []byte, start, end int, selected bool) bool {
	s.out.lines = s.out.lines || !s.o.heading
	if !s.o.only && !s.text(line) {
		return false
	}
	s.head()
	s.printed = s.number
	if err := s.out.line(s, line, start, end, selected); err != nil {
		s.stop = err
		return false
	}
	return true
}

// head prints the name of the file above its first line, with --heading.
func (s *scan) head() {
	if s.o.heading && s.o.named && !s.headed {
		if s.out.lines {
			s.out.text("\n")
		}
		s.out.listed(&s.o, s.name)
		s.headed = true
	}
	s.out.lines = true
}

// text reports whether b may be printed; if not, the file is binary.
func (s *scan) text(b []byte) bool {
	ok := s.o.anyText || s.o.binary == "text" || s.o.byteLocale || utf8.Valid(b)
	s.hidden = s.hidden || !ok
	return ok
}
