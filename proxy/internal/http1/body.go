package http1

import "bytes"

// Specification constants.
const chunkCRLFBytes = 2

// Implementation constants.
const (
	maxMethod       = 64       // bytes
	maxChunkLine    = 256      // bytes of one chunk-size line with its extensions
	maxTrailerBytes = 16 << 10 // all trailer fields of one body
	maxChunkDigits  = 15       // hex digits: fits an int64
	maxExtensions   = 16 << 10 // bytes of chunk-size lines that carry no data, per body
)

type phase uint8

const (
	done      phase = iota // no (more) body
	fixedData              // left bytes of Content-Length
	chunkSize              // at the start of a chunk-size line
	chunkData              // left bytes of a chunk
	chunkEnd               // at the CR LF after a chunk's data
	trailers               // at the start of a trailer line or the last empty line
)

// body follows the framing of one body (RFC 9112 sections 6 and 7.1).
type body struct {
	phase    phase
	left     int64 // in fixedData and chunkData
	overhead int   // bytes of extensions and trailers so far
}

// data reports how many of the next bytes are content, which needs no check.
func (b *body) data() int64 {
	if b.phase == fixedData || b.phase == chunkData {
		return b.left
	}
	return 0
}

// took records that n bytes of data() have passed.
func (b *body) took(n int) {
	b.left -= int64(n)
	if b.left > 0 {
		return
	}
	if b.phase == fixedData {
		b.phase = done
	} else {
		b.phase = chunkEnd
	}
}

// line looks for one line of chunk framing at the start of buf and reports its
// length with CR LF; 0 means that more bytes are needed.
func (b *body) line(buf []byte) (int, *Error) {
	i := bytes.IndexByte(buf, '\n')
	if i < 0 {
		if len(buf) > b.lineLimit() {
			return 0, malformed("a line of the chunked body is too long")
		}
		return 0, b.early(buf)
	}
	if i+1 > b.lineLimit() {
		return 0, malformed("a line of the chunked body is too long")
	}
	line, _, err := cutLine(buf[:i+1])
	if err != nil {
		return 0, malformed("a line of the chunked body does not end in CR LF")
	}
	return i + 1, b.accept(line)
}

// early refuses what cannot become a line, so that a client which waits for an
// answer gets it.
func (b *body) early(buf []byte) *Error {
	if b.phase == chunkEnd && len(buf) > 0 && buf[0] != '\r' {
		return malformed("a chunk is longer than its size says")
	}
	return nil
}

func (b *body) lineLimit() int {
	switch b.phase {
	case trailers:
		return maxTrailerBytes
	case chunkEnd:
		return chunkCRLFBytes
	}
	return maxChunkLine
}

func (b *body) accept(line []byte) *Error {
	switch b.phase {
	case chunkEnd:
		if len(line) != 0 {
			return malformed("a chunk is longer than its size says")
		}
		b.phase = chunkSize
		return nil
	case trailers:
		return b.acceptTrailer(line)
	}
	size, extension, err := parseChunkSize(line)
	if err != nil {
		return err
	}
	if b.overhead += extension; b.overhead > maxExtensions {
		return malformed("the chunk extensions are too long")
	}
	b.left = size
	b.phase = chunkData
	if size == 0 {
		b.phase, b.overhead = trailers, 0
	}
	return nil
}

func (b *body) acceptTrailer(line []byte) *Error {
	if len(line) == 0 {
		b.phase = done
		return nil
	}
	if b.overhead += len(line); b.overhead > maxTrailerBytes {
		return malformed("the trailers are too long")
	}
	name, _, err := splitField(line)
	if err != nil {
		return err
	}
	if !allowedTrailer(name) {
		return malformed("a trailer frames or routes a message")
	}
	return nil
}

// parseChunkSize reads 1*HEXDIG [ chunk-ext ] and reports how many bytes are
// not the size. Extensions are read for their form and mean nothing here.
func parseChunkSize(line []byte) (size int64, extension int, err *Error) {
	i := 0
	for ; i < len(line); i++ {
		d, ok := hexDigit(line[i])
		if !ok {
			break
		}
		if i == maxChunkDigits {
			return 0, 0, malformed("a chunk size is too large")
		}
		size = size<<4 | int64(d)
	}
	if i == 0 {
		return 0, 0, malformed("a chunk size is not a hex number")
	}
	rest := line[i:]
	if len(rest) > 0 && rest[0] != ';' {
		return 0, 0, malformed("a chunk size is not a hex number")
	}
	for _, c := range rest {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return 0, 0, malformed("a chunk extension holds a control byte")
		}
	}
	return size, len(rest), nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
