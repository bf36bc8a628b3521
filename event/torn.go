package event

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// torn is half a line at the end of what a Writer writes to: one of its own,
// that an error cut in two, or one that another process left there. The zero
// torn is none. Writer.mu guards it.
type torn struct {
	rest    []byte // what ends the line; empty when none is torn
	line    []byte // the whole line; nil when it is another process's
	checked bool   // the end of W was checked for what another process left
}

// open reports whether a line waits for its end.
func (t *torn) open() bool { return len(t.rest) > 0 }

// check sees, once, whether out ends within a line of another process.
func (t *torn) check(out io.Writer) {
	if !t.checked && endsInHalf(out) {
		t.rest = []byte{'\n'}
	}
	t.checked = true
}

// tear says that n bytes of the line which buf begins with were written.
func (t *torn) tear(buf []byte, n int) {
	t.line = bytes.Clone(buf[:n+bytes.IndexByte(buf[n:], '\n')+1])
	t.rest = t.line[n:]
}

// mended says that the line has its end.
func (t *torn) mended() { t.rest, t.line = nil, nil }

// moved says that another file follows, in which the line has no beginning: it
// is written whole. What was another process's stays behind.
func (t *torn) moved() {
	if t.open() {
		t.rest = t.line
	}
	t.checked = false
}

// endsInHalf reports whether out is a file whose last byte ends no line: the
// process that wrote it died on a full disk, or with the machine. A file
// that cannot be read counts as whole.
func endsInHalf(out io.Writer) bool {
	last := make([]byte, 1)
	return readTail(out, last) && last[0] != '\n'
}

// halfLine reports the line that the first n bytes of buf end within.
func halfLine(buf []byte, n int) []byte {
	if n <= 0 {
		return nil
	}
	return buf[bytes.LastIndexByte(buf[:n], '\n')+1 : n]
}

// removeHalf removes half, the beginning of a line, from the end of out, and
// reports how many bytes it removed: all or none.
//
// Threat: a full disk cuts a line in two, the process ends, and the next one
// writes its first line behind the half: two events are lost for every reader
// -> the half is removed at once, and only if the file still ends in exactly
// these bytes: what another process wrote behind it stays. Left over: a line
// that another process appends between the check and the cut, on a disk that has
// just been full.
func removeHalf(out io.Writer, half []byte) int {
	tail := make([]byte, len(half))
	if len(half) == 0 || !readTail(out, tail) || !bytes.Equal(tail, half) {
		return 0
	}
	f := out.(*os.File) // readTail reads from nothing else
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	end := info.Size() - int64(len(half))
	if f.Truncate(end) != nil {
		return 0
	}
	_, _ = f.Seek(end, io.SeekStart) // needed, and possible, if the file was not opened for appending
	return len(half)
}

// readTail fills p with the last bytes of out, if that is a regular file that
// has so many and can be read.
func readTail(out io.Writer, p []byte) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() < int64(len(p)) {
		return false
	}
	// f is for writing only, and its path may lead elsewhere by now.
	r, err := reopenForReading(f)
	if err != nil {
		return false
	}
	defer r.Close()
	if again, err := r.Stat(); err != nil || !os.SameFile(info, again) {
		return false
	}
	_, err = r.ReadAt(p, info.Size()-int64(len(p)))
	return err == nil
}

func reopenForReading(f *os.File) (*os.File, error) {
	r, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return os.Open(f.Name())
	}
	return r, nil
}
