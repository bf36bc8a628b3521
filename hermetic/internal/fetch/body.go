package fetch

import (
	"bytes"
	"io"
)

// Payload is the body of a request. The nil payload is none.
type Payload struct {
	Size int64 // -1: not known, sent in chunks
	Kind string
	Once bool // it can be read only once
	used bool
	Open func() (io.ReadCloser, error)
}

// BytesPayload is a body of b; kind is its Content-Type.
func BytesPayload(b []byte, kind string) *Payload {
	return &Payload{Size: int64(len(b)), Kind: kind, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b)), nil
	}}
}

func (p *Payload) reader() (io.ReadCloser, *Failure) {
	if p.Once && p.used {
		return nil, Fail(exitRewind, "necessary data rewind wasn't possible")
	}
	p.used = true
	r, err := p.Open()
	if err != nil {
		return nil, Fail(ExitRead, "Failed to open/read local data from file/application")
	}
	return r, nil
}

// Section is one piece of a multipart body.
type Section struct {
	Head  []byte
	Bytes []byte
	File  func() (io.ReadCloser, error) // nil: bytes
	Size  int64
}

// Multi joins sections into one payload that is read piece by piece.
func Multi(sections []Section, kind string) *Payload {
	p := &Payload{Kind: kind}
	for _, s := range sections {
		p.Size += int64(len(s.Head)) + int64(len(s.Bytes)) + s.Size
	}
	p.Open = func() (io.ReadCloser, error) { return &joined{rest: sections}, nil }
	return p
}

type joined struct {
	rest []Section
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
		j.at = io.MultiReader(bytes.NewReader(s.Head), bytes.NewReader(s.Bytes))
		if s.File != nil {
			f, err := s.File()
			if err != nil {
				return 0, err
			}
			j.file = f
			j.at = io.MultiReader(bytes.NewReader(s.Head), io.LimitReader(f, s.Size))
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
