package watch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Implementation constants of ReadFile.
const (
	freshTime    = 20 * time.Millisecond  // a file written as lately as that may be on its way
	restTime     = 5 * time.Millisecond   // that much must do for one that is written all the time
	emptyTime    = time.Second            // and as long an empty one is not believed
	patienceTime = 250 * time.Millisecond // how long a read waits for its writers to rest; then restTime must do
	readTime     = 1500 * time.Millisecond
	pipeTime     = 5 * time.Second // how long a pipe may take
	maxReadBytes = 128 << 20       // twice the longest policy
)

// ReadFile is os.ReadFile for a file that others write in place: it reads again
// when the file has changed meanwhile, and waits a moment for one that was
// written or emptied just now. When that does not end it fails: half a policy is
// another policy. A file over 128 MiB fails, too. Use it in Changed, so that the
// next write cannot be read by halves either.
func ReadFile(name string) ([]byte, error) {
	begin := time.Now()
	for {
		data, how, err := readOnce(name, nil)
		if err != nil {
			return nil, err
		}
		took, pause := time.Since(begin), restTime
		switch {
		case how == steady, how == resting && took > patienceTime:
			return data, nil
		case took > readTime:
			return nil, fmt.Errorf("%s: it changes while it is read, all the time", name)
		case took > patienceTime:
			pause = restTime / 5
		}
		<-time.After(pause)
	}
}

// Sum is the SHA-256 of a regular file's content, read in pieces. A file over 128
// MiB, and anything but a regular file, is an error. It tells whether a file still
// says what it said; a file that is being written has a sum of its own.
func Sum(name string) (sum [sha256.Size]byte, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return sum, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxReadBytes {
		return sum, fmt.Errorf("%s: no regular file of at most %d MiB", name, maxReadBytes>>20)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, maxReadBytes+1)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// What is known of one reading.
const (
	torn    = iota // the file changed meanwhile, or its writer may be in the middle of it
	resting        // nobody has written for a little while
	steady         // whole
)

// readOnce reads the file and says what is known of the reading. between, which
// only tests set, is called when the bytes are there.
func readOnce(name string, between func()) (data []byte, how int, err error) {
	// Threat: a pipe lies where the file was, and nobody writes: a load that
	// waited for that would be the last one -> opening waits for nobody, and
	// reading for a while.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, torn, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, torn, err
	}
	if !before.Mode().IsRegular() {
		_ = f.SetReadDeadline(time.Now().Add(pipeTime)) // what has no deadlines is always ready
	}
	if before.Size() <= maxReadBytes {
		// Not io.ReadAll: growing copies a long list several times.
		var b bytes.Buffer
		b.Grow(int(before.Size()) + bytes.MinRead)
		if _, err = b.ReadFrom(io.LimitReader(f, maxReadBytes+1)); err != nil {
			return nil, torn, err
		}
		data = b.Bytes()
	}
	if max(before.Size(), int64(len(data))) > maxReadBytes {
		return nil, torn, fmt.Errorf("%s: more than %d MiB: this is neither a policy nor a tokens file", name, maxReadBytes>>20)
	}
	if between != nil {
		between()
	}
	switch {
	case before.Mode()&os.ModeNamedPipe != 0 && len(data) == 0:
		return nil, torn, fmt.Errorf("%s: it is a pipe, and nobody writes into it", name) // not: an empty policy
	case !before.Mode().IsRegular():
		return data, steady, nil
	}
	was, _ := stateOf(before)
	is, _ := examine(name) // by name again: what a rename has replaced is stale, though whole
	if is != was || int64(len(data)) != was.size {
		return data, torn, nil
	}
	age := time.Since(before.ModTime())
	switch {
	case age < 0, age >= emptyTime, age >= freshTime && len(data) > 0:
		return data, steady, nil // a time in the future is a clock that jumped, and says nothing
	case len(data) > 0 && was.ctime > was.mtime:
		return data, steady, nil // since the last write it was renamed, or its mode or time was set
	case len(data) > 0 && age >= restTime:
		return data, resting, nil
	}
	return data, torn, nil
}
