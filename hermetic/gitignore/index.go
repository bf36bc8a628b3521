package gitignore

import (
	"encoding/binary"
	"errors"
)

var errIndex = errors.New("the git index cannot be read: it is damaged, or of a kind that is not known here")

// maxTracked bounds the entries of an index.
const maxTracked = 2_000_000

// Tracked lists the paths in a git index (gitformat-index(5), versions 2 to 4,
// SHA-1 or SHA-256): files that are in the repository whatever the rules say.
// hash is the length of an object's name in bytes, 20 or 32.
func Tracked(data []byte, hash int) (map[string]bool, error) {
	r := indexReader{b: data}
	head := r.next(12)
	if head == nil || string(head[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if version < 2 || version > 4 || count > maxTracked {
		return nil, errIndex
	}
	tracked := make(map[string]bool, min(int(count), len(data)/62))
	previous := ""
	for range count {
		name, err := r.entry(version, hash, previous)
		if err != nil {
			return nil, err
		}
		tracked[name] = true
		previous = name
	}
	return tracked, nil
}

type indexReader struct {
	b  []byte
	at int
}

// next reads n bytes; nil: there are fewer.
func (r *indexReader) next(n int) []byte {
	if n < 0 || len(r.b)-r.at < n {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

// entry reads one entry: ten numbers of stat(2), the object's name, flags, and
// the path, in version 4 as what it has beyond the previous one's beginning.
func (r *indexReader) entry(version uint32, hash int, previous string) (string, error) {
	start := r.at
	if r.next(40+hash) == nil {
		return "", errIndex
	}
	flags := r.next(2)
	if flags == nil {
		return "", errIndex
	}
	if flags[0]&0x40 != 0 && (version < 3 || r.next(2) == nil) { // extended
		return "", errIndex
	}
	if version < 4 {
		name, err := r.text()
		if err != nil {
			return "", err
		}
		// The entry, its NUL included, is padded to a multiple of eight.
		if pad := (8 - (r.at-start)%8) % 8; r.next(pad) == nil {
			return "", errIndex
		}
		return name, nil
	}
	cut, err := r.varint()
	if err != nil || cut > uint64(len(previous)) {
		return "", errIndex
	}
	tail, err := r.text()
	return previous[:uint64(len(previous))-cut] + tail, err
}

// text reads up to a NUL.
func (r *indexReader) text() (string, error) {
	for i := r.at; i < len(r.b); i++ {
		if r.b[i] == 0 {
			s := string(r.b[r.at:i])
			r.at = i + 1
			return s, nil
		}
	}
	return "", errIndex
}

// varint reads git's offset encoding.
func (r *indexReader) varint() (uint64, error) {
	b := r.next(1)
	if b == nil {
		return 0, errIndex
	}
	v := uint64(b[0] & 0x7f)
	for n := 0; b[0]&0x80 != 0; n++ {
		if b = r.next(1); b == nil || n > 8 {
			return 0, errIndex
		}
		v = (v+1)<<7 | uint64(b[0]&0x7f)
	}
	return v, nil
}
