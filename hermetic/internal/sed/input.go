package sed

import (
	"bufio"
	"errors"
	"io"
	"io/fs"

	"egressd/hermetic/command"
)

// lineReader reads lines of any length.
type lineReader struct {
	r      *bufio.Reader
	c      io.Closer
	seeker io.Seeker
	from   int64 // where the seeker was at the begin
	taken  int64 // bytes of the lines that were used
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{r: bufio.NewReaderSize(r, 64<<10)}
	l.c, _ = r.(io.Closer)
	if s, ok := r.(io.Seeker); ok {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			l.seeker, l.from = s, at
		}
	}
	return l
}

func (l *lineReader) close() {
	if l.c != nil {
		_ = l.c.Close()
	}
}

// line reads one; chomped says whether its delimiter was there.
func (l *lineReader) line(d byte, most int64) (line []byte, chomped, ok bool, err error) {
	for {
		part, err := l.r.ReadSlice(d)
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if int64(len(line)) > most {
				return nil, false, false, errMemory
			}
		case errors.Is(err, io.EOF):
			return line, false, len(line) > 0, nil
		case err != nil:
			return nil, false, false, err
		default:
			return line[:len(line)-1], true, true, nil
		}
	}
}

// input is the lines of all files, one ahead, so that the last is known.
type input struct {
	m      *machine
	names  []string // still to be opened
	name   string   // of the open file
	cur    *lineReader
	number int64

	ahead   bool // the next line was read
	line    []byte
	chomped bool
	place   *inPlace
	ended   bool // the open file has no more lines
}

func (in *input) shown() string { return in.name }

// fill reads a line ahead of the open file, or of the next that has one; with
// stay, never of another one.
func (in *input) fill(stay bool) (bool, error) {
	for !in.ahead {
		if in.cur == nil || in.ended {
			if stay && in.cur != nil || len(in.names) == 0 {
				return false, nil
			}
			if err := in.open(); err != nil {
				return false, err
			}
			continue
		}
		line, chomped, ok, err := in.cur.line(in.m.delimiter(), in.m.c.Budget.Limits.Memory/8)
		if err != nil {
			var f *failure
			if errors.As(err, &f) || in.m.ctx.Err() != nil {
				return false, err
			}
			return false, fail(statusPanic, "read error on %s: %s", in.name, command.Reason(err))
		}
		if in.line, in.chomped, in.ahead, in.ended = line, chomped, ok, !ok; ok {
			return true, nil
		}
	}
	return true, nil
}

// open opens the next file that can be; what cannot is told of.
func (in *input) open() error {
	if err := in.close(); err != nil {
		return err
	}
	name := in.names[0]
	in.names = in.names[1:]
	in.name, in.ended = name, false
	m := in.m
	if m.o.separate {
		in.number = 0
		m.reset()
	}
	if name == "-" && !m.o.inPlace {
		in.cur = newLineReader(m.c.Stdin)
		in.cur.c = nil
		return nil
	}
	info, err := m.c.FS.Stat(m.c.Path(name))
	if err == nil && m.o.inPlace && !info.Mode().IsRegular() {
		m.status = statusPanic
		m.c.Errorf("couldn't edit %s: not a regular file", name)
		return nil
	}
	var f io.ReadCloser
	if err == nil {
		f, err = m.c.FS.Open(m.c.Path(name))
	}
	if err != nil {
		m.status = statusInput
		_ = m.out.w.Flush()
		m.c.Errorf("can't read %s: %s", name, command.Reason(err))
		return nil
	}
	if info.IsDir() {
		_ = f.Close()
		m.status = statusInput
		_ = m.out.w.Flush()
		m.c.Errorf("couldn't edit %s: not a regular file", name)
		return nil
	}
	in.cur = newLineReader(f)
	if m.o.inPlace {
		return in.startEdit(name, info)
	}
	return nil
}

func (in *input) startEdit(name string, info fs.FileInfo) (err error) {
	if in.place, err = newInPlace(in.m.c, name, in.m.o.suffix, info); err == nil {
		in.m.out = in.place.out
	}
	return err
}

// close ends the open file; one that is edited takes its place.
func (in *input) close() error {
	if in.cur != nil {
		in.cur.close()
		in.cur = nil
	}
	if in.place == nil {
		return nil
	}
	place := in.place
	in.place, in.m.out = nil, in.m.std
	return place.finish()
}

// abandon leaves the file that is edited as it was.
func (in *input) abandon() {
	if in.place != nil {
		in.place.remove()
		in.place, in.m.out = nil, in.m.std
	}
}

// next takes the next line.
func (in *input) next() (line []byte, chomped, ok bool, err error) {
	if ok, err = in.fill(false); !ok {
		return nil, false, false, errors.Join(err, in.close())
	}
	in.ahead = false
	in.number++
	in.cur.taken += int64(len(in.line))
	if in.chomped {
		in.cur.taken++
	}
	return in.line, in.chomped, true, nil
}

// more reports whether there is a next line for n and N.
func (in *input) more() (bool, error) {
	return in.fill(in.m.o.separate)
}

// moreOfFile reports whether the line is not the last: of its file with -s.
func (in *input) moreOfFile() (bool, error) { return in.fill(in.m.o.separate) }

// leave is q: the rest of a file that is edited is kept, and the standard
// input is left after the last line that was used.
func (in *input) leave() error {
	if in.cur == nil {
		return nil
	}
	if in.place != nil {
		if in.ahead {
			if err := in.place.out.line(in.line, in.m.delimiter(), in.chomped); err != nil {
				return err
			}
		}
		if _, err := io.Copy(in.place.out.w, in.cur.r); err != nil {
			return err
		}
	}
	if in.name == "-" && in.cur.seeker != nil {
		_, _ = in.cur.seeker.Seek(in.cur.from+in.cur.taken, io.SeekStart)
	}
	return nil
}
