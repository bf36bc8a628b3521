package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
)

var errCoding = errors.New("a coding that is not known")

func decoded(coding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		return &late{from: body, make: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}, nil
	case "deflate":
		return &late{from: body, make: func(r io.Reader) (io.Reader, error) {
			br := bufio.NewReader(r)
			if b, err := br.Peek(2); err == nil && b[0]&15 == 8 && (int(b[0])<<8|int(b[1]))%31 == 0 {
				return zlib.NewReader(br)
			}
			return flate.NewReader(br), nil
		}}, nil
	}
	return nil, errCoding
}

// late makes its reader with the first read, so that an empty body is one.
type late struct {
	from io.Reader
	made io.Reader
	make func(io.Reader) (io.Reader, error)
}

func (l *late) Read(b []byte) (int, error) {
	if l.made == nil {
		br := bufio.NewReader(l.from)
		if _, err := br.Peek(1); err != nil {
			return 0, err
		}
		r, err := l.make(br)
		if err != nil {
			return 0, Fail(exitEncoding, "Error while processing content unencoding: %v", err)
		}
		l.made = r
	}
	n, err := l.made.Read(b)
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		err = Fail(exitEncoding, "Error while processing content unencoding: %v", err)
	}
	return n, err
}
