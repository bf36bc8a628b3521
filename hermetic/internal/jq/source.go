package jq

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/jq/value"
)

// Source is jq's inputs: the values, or lines, of all its files as one text.
type Source struct {
	W     *gnu.Work
	names []string
	Opts  *JqOptions

	name   string // of the file that is being read
	begun  bool
	open   io.ReadCloser
	failed bool // a file could not be opened

	d      *value.Reader
	lines  *bufio.Reader
	count  int // of lines read with -R
	events []any
	eof    bool
}

func (s *Source) close() {
	if s.open != nil {
		_ = s.open.Close()
		s.open = nil
	}
}

// Read reads the files one behind the other.
func (s *Source) Read(p []byte) (int, error) {
	for {
		if s.open == nil && !s.advance() {
			return 0, io.EOF
		}
		n, err := s.open.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			if s.W.Ctx.Err() != nil {
				return 0, err
			}
			s.failed = true
			s.W.Complain("error: %s: %s", s.name, command.Reason(err))
		}
		s.close()
	}
}

func (s *Source) advance() bool {
	if !s.begun && len(s.names) == 0 {
		s.names = []string{"-"}
	}
	s.begun = true
	for len(s.names) > 0 {
		name := s.names[0]
		s.names = s.names[1:]
		r, err := s.W.Open(name)
		if err == nil {
			s.name, s.open = name, r
			return true
		}
		s.failed = true
		s.W.Complain("error: Could not open %s: %s", name, command.Reason(err))
	}
	return false
}

func (s *Source) line() int {
	if s.d != nil {
		return s.d.Newlines
	}
	return s.count
}

// position is where an error happened.
func (s *Source) position() string {
	if s.name == "" {
		return "<unknown>"
	}
	name := s.name
	if name == "-" {
		name = "<stdin>"
	}
	return fmt.Sprintf("%s:%d", name, s.line())
}

// Next is the next input; io.EOF at the end.
func (s *Source) Next() (any, error) {
	if s.eof {
		return nil, io.EOF
	}
	if !s.Opts.slurp {
		return s.one()
	}
	s.eof = true
	if s.Opts.rawInput {
		b, err := s.W.All(s)
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

func (s *Source) one() (any, error) {
	if s.Opts.rawInput {
		return s.rawLine()
	}
	if len(s.events) > 0 {
		e := s.events[0]
		s.events = s.events[1:]
		return e, nil
	}
	if s.d == nil {
		s.d = value.NewReader(s, s.W.Most())
	}
	v, err := s.d.Next()
	if err != nil || !s.Opts.stream {
		return v, err
	}
	s.events = streamed(nil, nil, v)
	return s.one()
}

func (s *Source) rawLine() (any, error) {
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
		case errors.Is(err, bufio.ErrBufferFull) && int64(len(text)) < s.W.Most():
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
	case *value.Object:
		for _, k := range v.Keys() {
			lastKey = k
			e, _ := v.Get(k)
			events = streamed(events, at(k), e)
		}
	}
	if lastKey == nil {
		return append(events, []any{append([]any{}, path...), v})
	}
	return append(events, []any{at(lastKey)})
}
