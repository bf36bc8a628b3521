package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// source is jq's inputs: the values, or lines, of all its files as one text.
type source struct {
	w     *gnu.Work
	names []string
	opts  *jqOptions

	name   string // of the file that is being read
	begun  bool
	open   io.ReadCloser
	failed bool // a file could not be opened

	d      *reader
	lines  *bufio.Reader
	count  int // of lines read with -R
	events []any
	eof    bool
}

func (s *source) close() {
	if s.open != nil {
		_ = s.open.Close()
		s.open = nil
	}
}

// Read reads the files one behind the other.
func (s *source) Read(p []byte) (int, error) {
	for {
		if s.open == nil && !s.advance() {
			return 0, io.EOF
		}
		n, err := s.open.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			if s.w.Ctx.Err() != nil {
				return 0, err
			}
			s.failed = true
			s.w.Complain("error: %s: %s", s.name, command.Reason(err))
		}
		s.close()
	}
}

func (s *source) advance() bool {
	if !s.begun && len(s.names) == 0 {
		s.names = []string{"-"}
	}
	s.begun = true
	for len(s.names) > 0 {
		name := s.names[0]
		s.names = s.names[1:]
		r, err := s.w.Open(name)
		if err == nil {
			s.name, s.open = name, r
			return true
		}
		s.failed = true
		s.w.Complain("error: Could not open %s: %s", name, command.Reason(err))
	}
	return false
}

func (s *source) line() int {
	if s.d != nil {
		return s.d.newlines
	}
	return s.count
}

// position is where an error happened.
func (s *source) position() string {
	if s.name == "" {
		return "<unknown>"
	}
	name := s.name
	if name == "-" {
		name = "<stdin>"
	}
	return fmt.Sprintf("%s:%d", name, s.line())
}

// next is the next input; io.EOF at the end.
func (s *source) next() (any, error) {
	if s.eof {
		return nil, io.EOF
	}
	if !s.opts.slurp {
		return s.one()
	}
	s.eof = true
	if s.opts.rawInput {
		b, err := s.w.All(s)
		return strings.ToValidUTF8(string(b), "\ufffd"), err
	}
	all := []any{}
	for {
		v, err := s.one()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

func (s *source) one() (any, error) {
	if s.opts.rawInput {
		return s.rawLine()
	}
	if len(s.events) > 0 {
		e := s.events[0]
		s.events = s.events[1:]
		return e, nil
	}
	if s.d == nil {
		s.d = newReader(s, s.w.Most())
	}
	v, err := s.d.next()
	if err != nil || !s.opts.stream {
		return v, err
	}
	s.events = streamed(nil, nil, v)
	return s.one()
}

func (s *source) rawLine() (any, error) {
	if s.lines == nil {
		s.lines = bufio.NewReaderSize(s, 32<<10)
	}
	var text []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			s.count++
			text = text[:len(text)-1]
		case errors.Is(err, bufio.ErrBufferFull) && int64(len(text)) < s.w.Most():
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, gnu.ErrMemory
		case !errors.Is(err, io.EOF) || len(text) == 0:
			return nil, err
		}
		return strings.ToValidUTF8(string(text), "\ufffd"), nil
	}
}

// streamed are the events of --stream for v at path.
func streamed(events, path []any, v any) []any {
	at := func(k any) []any { return append(append([]any{}, path...), k) }
	var lastKey any
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			lastKey = float64(i)
			events = streamed(events, at(lastKey), e)
		}
	case *object:
		for _, k := range v.keys() {
			lastKey = k
			e, _ := v.get(k)
			events = streamed(events, at(k), e)
		}
	}
	if lastKey == nil {
		return append(events, []any{append([]any{}, path...), v})
	}
	return append(events, []any{at(lastKey)})
}
