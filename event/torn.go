package event

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// endsInHalf reports whether out is a file whose last byte ends no line: the
// process that wrote it died on a full disk, or with the machine. What cannot
// be read is taken for whole.
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

// takeBack removes half, the beginning of a line, from the end of out, and
// reports how many bytes it removed: all or none.
//
// Threat: a full disk cuts a line in two, the process ends, and the next one
// writes its first line behind the half: two events are lost for every reader
// -> the half is removed at once, and only where the file still ends in exactly
// these bytes: what somebody else wrote behind it stays. Left over: a line
// that another process appends between the look and the cut, on a disk that has
// just been full.
func takeBack(out io.Writer, half []byte) int {
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
	_, _ = f.Seek(end, io.SeekStart) // matters, and works, where the file was not opened for appending
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
