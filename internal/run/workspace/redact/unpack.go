package redact

import (
	"bytes"
	"compress/bzip2"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
)

// zipHeader is the length of a zip file's local header, without name and extra.
const zipHeader = 30

// unpack reports what a compressed stream at the beginning of data holds, at most limit
// bytes of it, and how many bytes of data it takes. A stream that breaks off counts up to
// there. size is 0 if there is none.
func unpack(data []byte, limit int) (content []byte, size int) {
	from := bytes.NewReader(data)
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b, 8}):
		var z *gzip.Reader
		if z, err = gzip.NewReader(from); err == nil {
			z.Multistream(false)
			r = z
		}
	case len(data) > 2 && data[0] == 0x78 && (int(data[0])<<8|int(data[1]))%31 == 0:
		r, err = zlib.NewReader(from)
	case bytes.HasPrefix(data, []byte("PK\x03\x04")) && len(data) > zipHeader && data[8] == 8:
		skip := zipHeader + int(binary.LittleEndian.Uint16(data[26:])) + int(binary.LittleEndian.Uint16(data[28:]))
		if skip < len(data) {
			_, err = from.Seek(int64(skip), io.SeekStart)
			r = flate.NewReader(from)
		}
	case bytes.HasPrefix(data, []byte("BZh")) && len(data) > 10 && bytes.Equal(data[4:10], []byte("1AY&SY")):
		r = bzip2.NewReader(from)
	}
	if r == nil || err != nil {
		return nil, 0
	}
	content, _ = io.ReadAll(io.LimitReader(r, int64(limit)))
	if len(content) == 0 {
		return nil, 0
	}
	return content, len(data) - from.Len()
}
