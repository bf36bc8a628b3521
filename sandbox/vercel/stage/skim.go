package stage

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strconv"
)

// Bounds of how much smaller an archive may be than what it holds. Source code is
// some five times larger; a workspace of zeros a thousand times, which is all that
// gzip can say.
const (
	maxRatio = 100     // times the compressed size, of what is more than
	anyRatio = 1 << 30 // bytes, which any archive may hold
)

// most is how many bytes an archive of size compressed bytes may unpack to.
//
// Threat: a few megabytes unpack to all that the other bounds let in, and take the
// disk here and minutes of its processor -> what is more than anyRatio must have come
// over the network in proportion. Left over: anyRatio bytes for almost nothing.
func (m *mirror) most(size int64) int64 {
	// Heads, padding and what may not travel count as much again.
	return min(2*m.tree.config.MaxBytes+2048*int64(m.tree.config.MaxFiles), max(anyRatio, maxRatio*size))
}

// sizeOf is the size of an archive, which is at its beginning then.
func sizeOf(archive io.ReadSeeker) (int64, error) {
	size, err := archive.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = archive.Seek(0, io.SeekStart)
	}
	return size, err
}

// skim refuses an archive that has too many entries or announces too much, before
// any of it is understood: reading a head costs a twentieth of parsing it. What it
// cannot follow it leaves to the reader that comes after it, which judges all of it.
func (m *mirror) skim(archive io.ReadSeeker) error {
	size, err := sizeOf(archive)
	if err != nil {
		return err
	}
	stream, err := gzip.NewReader(archive)
	if err != nil {
		return nil // the next one says it
	}
	s := skimmer{r: bufio.NewReaderSize(stream, 64<<10), left: m.most(size)}
	for entries := 0; ; {
		if entries&0xfff == 0 {
			if err := m.ctx.Err(); err != nil {
				return context.Cause(m.ctx)
			}
		}
		meta, ok := s.next()
		switch {
		case s.left < 0:
			return fmt.Errorf("%w: %d bytes would become more than %d", errTooLarge, size, m.most(size))
		case !ok:
			return nil
		case !meta:
			entries++
		}
		if entries > m.tree.config.MaxFiles+2 {
			return tooLarge("files", m.tree.config.MaxFiles)
		}
	}
}

const blockSize = 512 // of a tar

// skimmer goes from head to head of a tar.
type skimmer struct {
	r    *bufio.Reader
	left int64 // bytes that it may still announce
	size int64 // of the next entry, as an extended head says; 0: its own head says it
}

// next goes behind one entry. meta: it is about the next one. ok is false at the end,
// and at what it does not understand.
func (s *skimmer) next() (meta, ok bool) {
	head, err := s.r.Peek(blockSize)
	if err != nil || head[0] == 0 {
		return false, false
	}
	kind := head[156]
	size, ok := number(head[124:136])
	if !ok || kind == 'S' {
		return false, false
	}
	if _, err := s.r.Discard(blockSize); err != nil {
		return false, false
	}
	meta = kind == 'x' || kind == 'L' || kind == 'K'
	if !meta && s.size > 0 {
		size, s.size = s.size, 0
	}
	if kind >= '1' && kind <= '6' {
		size = 0 // no contents, whatever it says
	}
	if size > s.left-blockSize { // sizes may be so large that their sum overflows
		s.left = -1
		return false, false
	}
	s.left -= blockSize + size
	if kind == 'x' && !s.extended(size) {
		return false, false
	}
	skip := (size + blockSize - 1) / blockSize * blockSize
	if kind == 'x' {
		skip -= size
	}
	_, err = io.CopyN(io.Discard, s.r, skip)
	return meta, err == nil
}

// maxExtended bounds an extended head, as archive/tar does.
const maxExtended = 1 << 20

// extended reads the size that an extended head of size bytes gives the next entry.
func (s *skimmer) extended(size int64) bool {
	if size > maxExtended {
		return false
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(s.r, text); err != nil {
		return false
	}
	for len(text) > 0 {
		length, _, ok := bytes.Cut(text, []byte(" "))
		n, err := strconv.Atoi(string(length))
		if !ok || err != nil || n <= len(length)+1 || n > len(text) {
			return false
		}
		key, value, _ := bytes.Cut(bytes.TrimSuffix(text[len(length)+1:n], []byte("\n")), []byte("="))
		if string(key) == "size" {
			if s.size, err = strconv.ParseInt(string(value), 10, 64); err != nil || s.size < 0 {
				return false
			}
		}
		text = text[n:]
	}
	return true
}

// number reads a field of a head: octal digits, or binary after a byte of 0x80.
func number(field []byte) (n int64, ok bool) {
	if field[0]&0x80 != 0 {
		if field[0] != 0x80 || field[1]|field[2]|field[3] != 0 || field[4]&0x80 != 0 {
			return 0, false
		}
		for _, c := range field[4:] {
			n = n<<8 | int64(c)
		}
		return n, true
	}
	for _, c := range bytes.Trim(field, " \x00") {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}
