package web

import (
	"bytes"
	"io"
)

// payload is the body of a request. The nil payload is none.
type payload struct {
	size int64 // -1: not known, sent in chunks
	kind string
	once bool // it can be read only once
	used bool
	open func() (io.ReadCloser, error)
}

func bytesPayload(b []byte, kind string) *payload {
	return &payload{size: int64(len(b)), kind: kind, open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b)), nil
	}}
}

func (p *payload) reader() (io.ReadCloser, *failure) {
	if p.once && p.used {
		return nil, fail(exitRewind, "necessary data rewind wasn't possible")
	}
	p.used = true
	r, err := p.open()
	if err != nil {
		return nil, fail(exitRead, "Failed to open/read local data from file/application")
	}
	return r, nil
}

// section is one piece of a multipart body.
type section struct {
	head  []byte
	bytes []byte
	file  func() (io.ReadCloser, error) // nil: bytes
	size  int64
}

// multi joins sections into one payload that is read piece by piece.
func multi(sections []section, kind string) *payload {
	p := &payload{kind: kind}
	for _, s := range sections {
		p.size += int64(len(s.head)) + int64(len(s.bytes)) + s.size
	}
	p.open = func() (io.ReadCloser, error) { return &joined{rest: sections}, nil }
	return p
}

type joined struct {
	rest []section
	at   io.Reader
	file io.Closer
}

func (j *joined) Read(b []byte) (int, error) {
	for {
		if j.at != nil {
			n, err := j.at.Read(b)
			if n > 0 || err != io.EOF {
				return n, err
			}
			j.at = nil
			_ = j.Close()
		}
		if len(j.rest) == 0 {
			return 0, io.EOF
		}
		s := j.rest[0]
		j.rest = j.rest[1:]
		j.at = io.MultiReader(bytes.NewReader(s.head), bytes.NewReader(s.bytes))
		if s.file != nil {
			f, err := s.file()
			if err != nil {
				return 0, err
			}
			j.file = f
			j.at = io.MultiReader(bytes.NewReader(s.head), io.LimitReader(f, s.size))
		}
	}
}

func (j *joined) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
